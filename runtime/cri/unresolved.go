package cri

import (
	"context"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/conceal"
	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// withheld replaces a message of the runtime that repeats an expanded command, if the values in it
// are not known.
const withheld = "the message of the runtime is withheld: the command refers to variables"

// minResolved is the length in bytes of the shortest value of a variable that is replaced in
// messages. A shorter one occurs in texts by chance; in an expanded command, each is replaced.
const minResolved = 8

// unresolved returns err with a text in which the expanded command and the values of variables are
// replaced by the text of the spec, such as $(PASSWORD): runtimes repeat the command in the error
// of a start, and errors are logged, recorded in events and reported in statuses.
func (s *podSync) unresolved(ctx context.Context, c *v1.Container, err error) error {
	if !expands(c) && len(c.Env) == 0 && len(c.EnvFrom) == 0 {
		return err
	}
	env, ok := s.env[c.Name]
	if !ok { // the instance was created by an earlier sync
		var failed error
		if env, failed = s.environment(ctx, c); failed != nil {
			if !expands(c) {
				return err
			}
			return &renamedError{text: withheld, err: err}
		}
	}
	text := errorMessage(err)
	if shown := conceal.Text(text, resolved(c, env)); shown != text {
		return &renamedError{text: shown, err: err}
	}
	return err
}

// resolved returns the texts of a container's command and environment that its spec only refers
// to, each with the reference.
func resolved(c *v1.Container, env *podenv.Env) (values []conceal.Value) {
	for _, args := range [][]string{c.Command, c.Args} {
		expanded, err := env.ExpandAll(args)
		if err != nil {
			continue // the container was not created with it
		}
		for i, arg := range expanded {
			if arg != args[i] {
				values = append(values, conceal.Value{Old: arg, New: args[i]})
			}
		}
	}
	for _, v := range env.Vars() {
		literal := slices.ContainsFunc(c.Env, func(own v1.EnvVar) bool {
			return own.Name == v.Name && (own.Value == v.Value || own.ValueFrom != nil && own.ValueFrom.SecretKeyRef == nil && own.ValueFrom.ConfigMapKeyRef == nil && own.ValueFrom.FileKeyRef == nil)
		})
		if !literal && len(v.Value) >= minResolved {
			values = append(values, conceal.Value{Old: v.Value, New: "$(" + v.Name + ")"})
		}
	}
	return values
}

// expands reports whether the command or arguments of a container may refer to variables.
func expands(c *v1.Container) bool {
	refers := func(arg string) bool { return strings.Contains(arg, "$(") }
	return slices.ContainsFunc(c.Command, refers) || slices.ContainsFunc(c.Args, refers)
}
