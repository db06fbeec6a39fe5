package podenv

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// MaxSize bounds the values of an environment together, and the arguments of a
// command together, in bytes. References multiply: forty variables, each with two
// references to the one before, would have a terabyte. No process is affected,
// because Linux passes at most 6 MiB to one.
const MaxSize = 8 << 20

// ErrTooLarge reports an environment or arguments of more than [MaxSize].
var ErrTooLarge = fmt.Errorf("larger than %d bytes with its references expanded", MaxSize)

// Expand replaces $(NAME) by the value that lookup returns for NAME. A reference
// that lookup does not have is left as it is; $$ is a $ that begins no reference,
// so $$(NAME) gives $(NAME) (pe-4). It returns ErrTooLarge if the result exceeds
// [MaxSize].
func Expand(s string, lookup func(name string) (string, bool)) (string, error) {
	return expand(s, MaxSize, lookup)
}

// expand is Expand for a result of at most max bytes.
func expand(s string, max int, lookup func(name string) (string, bool)) (string, error) {
	var b strings.Builder
	add := func(part string) bool {
		if len(part) > max-b.Len() {
			return false
		}
		b.WriteString(part)
		return true
	}
	for {
		i := strings.IndexByte(s, '$')
		if i < 0 || i == len(s)-1 {
			if !add(s) {
				return "", ErrTooLarge
			}
			return b.String(), nil
		}
		part := s[i : i+2]
		before := s[:i]
		s = s[i:]
		switch end := strings.IndexByte(s, ')'); {
		case s[1] == '$':
			part = "$"
			s = s[2:]
		case s[1] == '(' && end > 0:
			part = s[:end+1]
			if value, ok := lookup(s[2:end]); ok {
				part = value
			}
			s = s[end+1:]
		default:
			s = s[2:]
		}
		if !add(before) || !add(part) {
			return "", ErrTooLarge
		}
	}
}

// ExpandAll expands each of args. It returns ErrTooLarge if the results together
// exceed [MaxSize].
func ExpandAll(args []string, lookup func(name string) (string, bool)) ([]string, error) {
	var out []string
	left := MaxSize
	for _, a := range args {
		expanded, err := expand(a, left, lookup)
		if err != nil {
			return nil, err
		}
		left -= len(expanded)
		out = append(out, expanded)
	}
	return out, nil
}

// ExpandLiterals expands each of args over the literal values among env, which
// are not expanded themselves: a probe runs in a container that exists already and
// has no other values (prober-34). A reference to a variable whose value comes from
// elsewhere is left as it is. It returns ErrTooLarge as [ExpandAll] does.
func ExpandLiterals(args []string, env []v1.EnvVar) ([]string, error) {
	last := make(map[string]*v1.EnvVar, len(env)) // of a name that occurs twice
	for i := range env {
		last[env[i].Name] = &env[i]
	}
	return ExpandAll(args, func(name string) (string, bool) {
		v := last[name]
		if v == nil {
			return "", false
		}
		return v.Value, v.ValueFrom == nil
	})
}
