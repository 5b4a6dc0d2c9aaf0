// Handshakes of a Go client with a server and with Go's own server of the same settings, which exporter-toolkit would start.
//
// usage: go_tls FOLDER ADDRESS SETTINGS. FOLDER holds the test's certificates; SETTINGS is JSON, see Settings. Prints a line of JSON
// for each client.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type Settings struct {
	Min, Max   uint16
	Suites     []string
	Curves     []tls.CurveID
	ClientAuth tls.ClientAuthType
	ClientCA   string // a file; empty: no CA
	Names      []string
}

type Outcome struct {
	Client string
	Ours   string
	Go     string
}

var versionNames = map[uint16]string{tls.VersionTLS10: "TLS 1.0", tls.VersionTLS11: "TLS 1.1", tls.VersionTLS12: "TLS 1.2", tls.VersionTLS13: "TLS 1.3"}

func versionName(version uint16) string { return versionNames[version] }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pool(file string) *x509.CertPool {
	text, err := os.ReadFile(file)
	check(err)
	certificates := x509.NewCertPool()
	certificates.AppendCertsFromPEM(text)
	return certificates
}

// Without names: the default of Go 1.22 and later. Older ones, and programs without a go.mod, add suites without forward secrecy.
func suiteIDs(names []string) []uint16 {
	var ids []uint16
	for _, suite := range tls.CipherSuites() {
		for _, name := range names {
			if suite.Name == name {
				ids = append(ids, suite.ID)
			}
		}
		if len(names) == 0 && !strings.HasPrefix(suite.Name, "TLS_RSA_") {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}

func allowed(names []string) func([][]byte, [][]*x509.Certificate) error {
	if len(names) == 0 {
		return nil
	}
	return func(raw [][]byte, _ [][]*x509.Certificate) error {
		leaf, err := x509.ParseCertificate(raw[0])
		if err != nil {
			return err
		}
		found := append(append([]string{}, leaf.DNSNames...), leaf.EmailAddresses...)
		for _, ip := range leaf.IPAddresses {
			found = append(found, ip.String())
		}
		for _, uri := range leaf.URIs {
			found = append(found, uri.String())
		}
		for _, name := range names {
			for _, each := range found {
				if name == each {
					return nil
				}
			}
		}
		return fmt.Errorf("no allowed name")
	}
}

// Answers one request on each connection.
func serve(listener net.Listener, config *tls.Config) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			server := tls.Server(connection, config)
			server.SetDeadline(time.Now().Add(10 * time.Second))
			if server.Handshake() != nil {
				return
			}
			if _, err := bufio.NewReader(server).ReadString('\n'); err == nil {
				fmt.Fprint(server, "HTTP/1.1 200 OK\r\n\r\n")
			}
		}()
	}
}

func ask(address string, config *tls.Config) string {
	connection, err := net.DialTimeout("tcp", address, 10*time.Second)
	check(err)
	defer connection.Close()
	client := tls.Client(connection, config)
	client.SetDeadline(time.Now().Add(10 * time.Second))
	if client.Handshake() != nil {
		return "refused"
	}
	fmt.Fprint(client, "GET /-/healthy HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	status, err := bufio.NewReader(client).ReadString('\n')
	if err != nil || !strings.Contains(status, " 200 ") {
		return "refused"
	}
	state := client.ConnectionState()
	return fmt.Sprintf("%s %s", versionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
}

func main() {
	folder, address := os.Args[1], os.Args[2]
	var settings Settings
	check(json.Unmarshal([]byte(os.Args[3]), &settings))
	file := func(name string) string { return filepath.Join(folder, name) }
	pair, err := tls.LoadX509KeyPair(file("server.crt"), file("server.key"))
	check(err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: settings.Min, MaxVersion: settings.Max,
		CipherSuites: suiteIDs(settings.Suites), CurvePreferences: settings.Curves, ClientAuth: settings.ClientAuth,
		ClientCAs: x509.NewCertPool(), VerifyPeerCertificate: allowed(settings.Names), SessionTicketsDisabled: true}
	if settings.ClientCA != "" {
		config.ClientCAs = pool(file(settings.ClientCA))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go serve(listener, config)

	output := json.NewEncoder(os.Stdout)
	try := func(name string, change func(*tls.Config)) {
		client := &tls.Config{RootCAs: pool(file("tls-ca-chain.pem")), ServerName: "localhost", MinVersion: tls.VersionTLS10}
		change(client)
		check(output.Encode(Outcome{name, ask(address, client), ask(listener.Addr().String(), client)}))
	}
	try("default", func(*tls.Config) {})
	for version := uint16(tls.VersionTLS10); version <= tls.VersionTLS13; version++ {
		try(versionName(version), func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version })
	}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if suite.SupportedVersions[0] == tls.VersionTLS13 {
			continue // a Go client cannot choose
		}
		try(suite.Name, func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{suite.ID} })
	}
	for _, curve := range []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521, tls.X25519} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			try(fmt.Sprint(curve, " ", versionName(version)), func(c *tls.Config) {
				c.MinVersion, c.MaxVersion, c.CurvePreferences = version, version, []tls.CurveID{curve}
			})
		}
	}
	for _, name := range []string{"client", "client_selfsigned", "client2_selfsigned"} {
		pair, err := tls.LoadX509KeyPair(file(name+".pem"), file(name+".key"))
		check(err)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			try(name+" "+versionName(version), func(c *tls.Config) {
				c.MinVersion, c.MaxVersion = version, version
				// Sent whatever CAs the server names.
				c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			})
		}
	}
}
