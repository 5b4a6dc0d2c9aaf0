// Renders the Helm chart with Helm's own engine, builds kustomizations with kustomize's, and decodes objects strictly by the types of Kubernetes and of the Prometheus operator.
//
//	kubernetes kustomize FOLDER                          prints what kustomize builds
//	kubernetes render CHART RELEASE NAMESPACE [VALUES]   prints the chart's objects as YAML
//	kubernetes decode FILE...                            fails at the first field that its type does not have
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	resource "k8s.io/api/resource/v1"
	yamldocuments "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var types = map[string]func() any{
	"v1/Namespace":                             func() any { return &core.Namespace{} },
	"v1/ServiceAccount":                        func() any { return &core.ServiceAccount{} },
	"v1/ConfigMap":                             func() any { return &core.ConfigMap{} },
	"v1/Service":                               func() any { return &core.Service{} },
	"apps/v1/DaemonSet":                        func() any { return &apps.DaemonSet{} },
	"networking.k8s.io/v1/NetworkPolicy":       func() any { return &networking.NetworkPolicy{} },
	"resource.k8s.io/v1/ResourceClaimTemplate": func() any { return &resource.ResourceClaimTemplate{} },
	"monitoring.coreos.com/v1/PodMonitor":      func() any { return &monitoring.PodMonitor{} },
	"monitoring.coreos.com/v1/ServiceMonitor":  func() any { return &monitoring.ServiceMonitor{} },
	"monitoring.coreos.com/v1/PrometheusRule":  func() any { return &monitoring.PrometheusRule{} },
}

type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

func decode(document []byte) error {
	var known head
	if err := yaml.Unmarshal(document, &known); err != nil {
		return err
	}
	create := types[known.APIVersion+"/"+known.Kind]
	if create == nil {
		return fmt.Errorf("no type for %s/%s", known.APIVersion, known.Kind)
	}
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return fmt.Errorf("%s %s: %w", known.Kind, known.Metadata.Name, err)
	}
	// The API server's own decoder, which distinguishes upper and lower case.
	strict, err := json.UnmarshalStrict(text, create())
	if err := errors.Join(append(strict, err)...); err != nil {
		return fmt.Errorf("%s %s: %w", known.Kind, known.Metadata.Name, err)
	}
	fmt.Printf("%s %s\n", known.Kind, known.Metadata.Name)
	return nil
}

func decodeFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	reader := yamldocuments.NewDocumentDecoder(io.NopCloser(bytes.NewReader(data)))
	for {
		document := make([]byte, 4<<20)
		size, err := reader.Read(document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(bytes.TrimSpace(document[:size])) == 0 {
			continue
		}
		if err := decode(document[:size]); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

func render(path, release, namespace, valuesFile string) error {
	chart, err := loader.Load(path)
	if err != nil {
		return err
	}
	if err := chart.Validate(); err != nil {
		return err
	}
	values := map[string]any{}
	if valuesFile != "" {
		if values, err = chartutil.ReadValuesFile(valuesFile); err != nil {
			return err
		}
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(files[name]) != "" {
			fmt.Printf("---\n%s\n", files[name])
		}
	}
	return nil
}

func kustomize(folder string) error {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return err
	}
	text, err := built.AsYaml()
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}

func run(arguments []string) error {
	switch {
	case len(arguments) >= 4 && arguments[0] == "render":
		return render(arguments[1], arguments[2], arguments[3], strings.Join(arguments[4:], ""))
	case len(arguments) == 2 && arguments[0] == "kustomize":
		return kustomize(arguments[1])
	case len(arguments) >= 2 && arguments[0] == "decode":
		for _, path := range arguments[1:] {
			if err := decodeFile(path); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("wrong arguments")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
