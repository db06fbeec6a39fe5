package podenv

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// maxSize limits the total size in bytes of the values of an environment, and of the arguments of
// a command. Nested references grow exponentially: forty variables, each with two references to
// the previous one, would have a terabyte. Linux passes at most 6 MiB to a process.
const maxSize = 8 << 20

var errTooLarge = fmt.Errorf("larger than %d bytes with its references expanded", maxSize)

// Expand replaces each reference $(NAME) in s by the value that lookup returns for NAME. A
// reference for which lookup returns false is left unchanged. $$ is an escaped $: $$(NAME) gives
// $(NAME) (rule pe-4). It returns an error if the result exceeds 8 MiB.
func Expand(s string, lookup func(name string) (string, bool)) (string, error) {
	return expand(s, maxSize, lookup)
}

// expand is Expand with a limit of max bytes.
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
				return "", errTooLarge
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
			return "", errTooLarge
		}
	}
}

// ExpandAll expands each of args as [Expand] does. It returns an error if the results exceed 8 MiB
// in total.
func ExpandAll(args []string, lookup func(name string) (string, bool)) ([]string, error) {
	var out []string
	left := maxSize
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

// ExpandLiterals expands references in the command of a probe: each of args as [Expand] does, with
// the values of env, which are not expanded themselves. A reference to a variable with a valueFrom
// is left unchanged (rule prober-34). It returns an error if the results exceed 8 MiB in total.
func ExpandLiterals(args []string, env []v1.EnvVar) ([]string, error) {
	last := make(map[string]*v1.EnvVar, len(env)) // the last one of a name
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

// ExpandSubPath expands a subPathExpr. It returns an error that names the undefined variables.
func (e *Env) ExpandSubPath(expr string) (string, error) {
	var missing []string
	path, err := Expand(expr, func(name string) (string, bool) {
		value, ok := e.Get(name)
		if !ok {
			missing = append(missing, name)
		}
		return value, ok
	})
	if err != nil {
		return "", fmt.Errorf("subPathExpr %q is %w", expr, err)
	}
	if missing != nil {
		return "", fmt.Errorf("subPathExpr %q: no such variable: %s", expr, strings.Join(missing, ", "))
	}
	return path, nil
}
