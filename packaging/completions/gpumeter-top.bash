# bash completion for gpumeter-top(1)                                      -*- shell-script -*-

_gpumeter_top() {
  # readline breaks words at "=", so a value is two words after its flag, or one word if the "=" is still missing.
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  [ "$word" = "=" ] && word=""
  if [ "$before" = "=" ]; then before=${COMP_WORDS[COMP_CWORD - 2]}; fi
  case $before in
    --sort) mapfile -t COMPREPLY < <(compgen -W "state gpu utilization power memory temperature" -- "$word") ;;
    --url) mapfile -t COMPREPLY < <(compgen -A hostname -- "$word") ;;
    --ca-file | --login-file) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    --interval) COMPREPLY=() ;;
    *) mapfile -t COMPREPLY < <(compgen -W "--url --ca-file --login-file --interval --sort --once --json --help --version" -- "$word") ;;
  esac
}

complete -F _gpumeter_top gpumeter-top
