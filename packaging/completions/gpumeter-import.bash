# bash completion for gpumeter-import(1)                                   -*- shell-script -*-

_gpumeter_import() {
  # readline breaks words at "=", so a value is two words after its flag, or one word if the "=" is still missing.
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  [ "$word" = "=" ] && word=""
  if [ "$before" = "=" ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $before in
    gpumeter-import) mapfile -t COMPREPLY < <(compgen -W "clpeak nvbandwidth dcgm-diag rocm-bandwidth-test transferbench deepbench ai-benchmark mlperf nccl-tests" -- "$word") ;;
    --jobs-socket) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --gpu | --uuid | --host) COMPREPLY=() ;;
    *) mapfile -t COMPREPLY < <(compgen -W "--gpu --uuid --host --jobs-socket --dry-run --help --version" -- "$word"; compgen -f -- "$word") ;;
  esac
}

complete -F _gpumeter_import gpumeter-import
