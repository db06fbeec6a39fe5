package podenv

import (
	"strings"

	v1 "k8s.io/api/core/v1"
)

// Expand replaces $(NAME) by what lookup has for NAME. What it doesn't have, and
// what is no reference, stays as it is; $$ is a $ that begins no reference, so
// $$(NAME) gives $(NAME) (pe-4).
func Expand(s string, lookup func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i:]
		switch end := strings.IndexByte(s, ')'); {
		case s[1] == '$':
			b.WriteByte('$')
			s = s[2:]
		case s[1] == '(' && end > 0:
			if value, ok := lookup(s[2:end]); ok {
				b.WriteString(value)
			} else {
				b.WriteString(s[:end+1])
			}
			s = s[end+1:]
		default:
			b.WriteString(s[:2])
			s = s[2:]
		}
	}
}

// ExpandLiterals expands each of args over the literal values among env, which
// are themselves taken as they are written: who runs a command in a container
// that is there already, a probe, knows no others (prober-34). A reference to a
// variable that has its value from elsewhere stays as it is.
func ExpandLiterals(args []string, env []v1.EnvVar) []string {
	lookup := func(name string) (string, bool) {
		for i := len(env) - 1; i >= 0; i-- { // the last of a name counts
			if env[i].Name == name {
				return env[i].Value, env[i].ValueFrom == nil
			}
		}
		return "", false
	}
	var out []string
	for _, a := range args {
		out = append(out, Expand(a, lookup))
	}
	return out
}
