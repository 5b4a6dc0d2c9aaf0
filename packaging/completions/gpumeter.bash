# bash completion for gpumeter(8)                                          -*- shell-script -*-

_gpumeter_commands="allocate bundle check explain forget import profile record top"
_gpumeter_check_flags="--json --gpu= --fail-on= --suite= --url= --ca-file= --login-file="
_gpumeter_bundle_flags="--list --log= --url= --ca-file= --login-file="
_gpumeter_record_flags="--for= --url= --ca-file= --login-file="
_gpumeter_explain_words="xid sxid reason --json"
_gpumeter_profile_words="--run= --pid= --steps= --seconds= --output="
_gpumeter_allocate_words="set clear list --gpu= --user= --kind="
_gpumeter_top_flags="--url= --ca-file= --login-file= --interval= --sort= --once --json --help --version"
_gpumeter_import_words="clpeak nvbandwidth dcgm-diag rocm-bandwidth-test transferbench deepbench ai-benchmark mlperf nccl-tests --gpu= --uuid= --host= --jobs-socket= --dry-run --help --version"
# The flags. A "=" marks a flag with a value; the case below completes some of the values.
_gpumeter_flags="--config.file= --web.listen-address= --web.config.file= --web.telemetry-path= --web.systemd-socket
--metrics.detail= --path.sysfs= --path.procfs= --path.state= --path.api= --log.level= --log.format=
--collector.nvidia --no-collector.nvidia --collector.amd --no-collector.amd --collector.simulated --no-collector.simulated --collector.drm --no-collector.drm --collector.neuron --no-collector.neuron --collector.gaudi --no-collector.gaudi --collector.intel --no-collector.intel --collector.disable-defaults
--simulate= --simulate-event= --replay= --speed= --help --version --check-config --reload= --once --list-devices --print-metrics= --print-config= --print-conditions= --print-events= --print-otlp="

_gpumeter_values() {
  case $1 in
    --config.file | --web.config.file | --ca-file | --login-file | --log) compgen -f -- "$2" ;;
    --path.*) compgen -d -- "$2" ;;
    --metrics.detail) compgen -W "standard full" -- "$2" ;;
    --log.level) compgen -W "debug info warn error" -- "$2" ;;
    --log.format) compgen -W "auto logfmt json" -- "$2" ;;
    --once) compgen -W "0 1" -- "$2" ;;
    --print-metrics) compgen -W "markdown text" -- "$2" ;;
    --print-conditions) compgen -W "markdown json" -- "$2" ;;
    --kind) compgen -W "systemd_unit user_unit session container pod slurm_job vm other" -- "$2" ;;
    --suite) compgen -W "nvidia gpud azure" -- "$2" ;;
    --fail-on) compgen -W "failed degraded" -- "$2" ;;
    --print-config | --print-events | --print-otlp) compgen -W "markdown" -- "$2" ;;
  esac
}

_gpumeter() {
  # readline breaks words at "=", so a value is two words after its flag, or one word if the "=" is still missing.
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  [ "$word" = "=" ] && word="" && COMP_WORDS[COMP_CWORD]=
  if [ "$before" = "=" ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  mapfile -t COMPREPLY < <(_gpumeter_values "$before" "$word")
  [ ${#COMPREPLY[@]} -gt 0 ] && return
  local words=$_gpumeter_flags
  [ "$COMP_CWORD" -eq 1 ] && words="$_gpumeter_commands $words"
  [ "${COMP_WORDS[1]-}" = check ] && words="$_gpumeter_check_flags $words"
  [ "${COMP_WORDS[1]-}" = bundle ] && words="$_gpumeter_bundle_flags $words"
  [ "${COMP_WORDS[1]-}" = record ] && words="$_gpumeter_record_flags $words"
  [ "${COMP_WORDS[1]-}" = explain ] && words=$_gpumeter_explain_words
  [ "${COMP_WORDS[1]-}" = profile ] && words="$_gpumeter_profile_words $words"
  [ "${COMP_WORDS[1]-}" = allocate ] && words="$_gpumeter_allocate_words $words"
  [ "${COMP_WORDS[1]-}" = top ] && words=$_gpumeter_top_flags
  [ "${COMP_WORDS[1]-}" = import ] && words=$_gpumeter_import_words
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}

complete -F _gpumeter gpumeter
