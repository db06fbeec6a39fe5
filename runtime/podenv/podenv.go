package podenv

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Var is an environment variable.
type Var struct {
	Name, Value string
	Source      Source
}

// String returns the name and the source: the value may be secret.
func (v Var) String() string { return v.Name + " (" + v.Source.String() + ")" }

// Format implements fmt.Formatter: it writes String for all verbs.
func (v Var) Format(f fmt.State, _ rune) { fmt.Fprint(f, v.String()) }

// LogValue implements slog.LogValuer.
func (v Var) LogValue() slog.Value { return slog.StringValue(v.String()) }

// An Env is the environment of a container. It has each name once, in the order of the first
// definition. It is immutable.
type Env struct {
	vars  []Var
	index map[string]int
	size  int // bytes of all values
}

// Inputs are the pod and all objects that environment variables can refer to.
type Inputs struct {
	Pod     *v1.Pod
	PodIPs  []string // of the pod sandbox, in any order
	HostIPs []string // of the node, the primary one first

	// Allocatable are the allocatable resources of the node, the limits of a container
	// that has none (rule pe-8).
	Allocatable v1.ResourceList

	// ConfigMaps and Secrets of the pod's namespace by name: all that [References]
	// returns. If a map is nil, a variable that refers to such an object is an error,
	// ErrNoClient.
	ConfigMaps map[string]Fetched[*v1.ConfigMap]
	Secrets    map[string]Fetched[*v1.Secret]

	// Files are the env files that References returns. If nil, a variable that refers to
	// one is an error.
	Files map[File]Fetched[[]byte]

	// Services may contain services of any namespace, in any order. Those of the pod's
	// namespace are used if spec.enableServiceLinks is true or not set; the service
	// kubernetes of the namespace default is always used (rule pe-12).
	Services []*v1.Service

	// ServicesPending reports that Services have not been read yet. New then returns an
	// error, because the environment cannot be changed while the container runs. Static
	// pods are exempt (rule pe-1).
	ServicesPending bool
}

var errServicesPending = errors.New("services have not yet been read at least once, cannot construct envvars")

// New returns the environment of container c of in.Pod, which may be a regular, init or ephemeral
// container: the variables of envFrom in order, then those of env in order, which replace earlier
// ones, then those of services whose names are not defined yet (rule pe-2). The text of an error is
// the message of the container's waiting state with the reason CreateContainerConfigError.
func New(in Inputs, c *v1.Container) (*Env, error) {
	if in.ServicesPending && !runtime.IsStatic(in.Pod) {
		return nil, errServicesPending
	}
	e := &Env{index: map[string]int{}}
	for i := range c.EnvFrom {
		if err := e.setFrom(in, i, &c.EnvFrom[i]); err != nil {
			return nil, err
		}
	}
	links := serviceLinks(in)
	lookup := func(name string) (string, bool) { // rule pe-4
		if value, ok := e.Get(name); ok {
			return value, true
		}
		return links.Get(name)
	}
	for i := range c.Env {
		v := &c.Env[i]
		var value string
		var err error
		found := true
		if v.ValueFrom != nil {
			value, found, err = valueFrom(in, c, v)
		} else if value, err = expand(v.Value, maxSize-e.size, lookup); err != nil { // only literal values are expanded (rule pe-5)
			err = fmt.Errorf("%v: the environment is %w", sourceOf(i, nil), err)
		}
		if err != nil {
			return nil, err
		}
		if !found {
			continue // optional; the value of envFrom is kept
		}
		if err := e.set(Var{v.Name, value, sourceOf(i, v.ValueFrom)}); err != nil {
			return nil, err
		}
	}
	for _, v := range links.vars {
		if _, taken := e.index[v.Name]; !taken {
			e.put(v)
		}
	}
	return e, nil
}

// Vars returns the variables in the order of their first definition. The caller must not modify
// the slice.
func (e *Env) Vars() []Var { return e.vars }

// EnvVars returns the variables in the form of a container spec. The caller owns the slice.
func (e *Env) EnvVars() []v1.EnvVar {
	list := make([]v1.EnvVar, 0, len(e.vars))
	for _, v := range e.vars {
		list = append(list, v1.EnvVar{Name: v.Name, Value: v.Value})
	}
	return list
}

// Get returns the value of a variable, and whether it is defined.
func (e *Env) Get(name string) (string, bool) {
	i, ok := e.index[name]
	if !ok {
		return "", false
	}
	return e.vars[i].Value, true
}

// ExpandAll expands references to variables of e in each of args, the command or arguments of the
// container, as [Expand] does. It returns an error if the results exceed 8 MiB in total.
func (e *Env) ExpandAll(args []string) ([]string, error) { return ExpandAll(args, e.Get) }

// set defines a variable of the spec. It returns an error if a process cannot have it: a name ends
// at "=", and names and values end at a zero byte.
func (e *Env) set(v Var) error {
	switch {
	case v.Name == "":
		return fmt.Errorf("%v: empty variable name", v.Source)
	case strings.ContainsAny(v.Name, "=\x00"):
		return fmt.Errorf("%v: invalid variable name %q", v.Source, v.Name)
	case strings.ContainsRune(v.Value, 0):
		return fmt.Errorf("%v: the value of %s contains a zero byte", v.Source, v.Name)
	case len(v.Value) > maxSize-e.size:
		return fmt.Errorf("%v: the environment is %w", v.Source, errTooLarge)
	}
	e.put(v)
	return nil
}

// put defines a variable. It replaces one of the same name in its position.
func (e *Env) put(v Var) {
	e.size += len(v.Value)
	if i, ok := e.index[v.Name]; ok {
		e.size -= len(e.vars[i].Value)
		e.vars[i] = v
		return
	}
	e.index[v.Name] = len(e.vars)
	e.vars = append(e.vars, v)
}

// setFrom defines the variables of an envFrom entry, sorted by key.
func (e *Env) setFrom(in Inputs, i int, from *v1.EnvFromSource) error {
	source := Source{EnvFrom: true, Index: i}
	data, optional := map[string]string{}, false
	var err error
	switch {
	case from.ConfigMapRef != nil:
		source.Kind, source.Object, optional = kindConfigMap, from.ConfigMapRef.Name, isTrue(from.ConfigMapRef.Optional)
		data, err = in.configMap(source.Object)
	case from.SecretRef != nil:
		source.Kind, source.Object, optional = kindSecret, from.SecretRef.Name, isTrue(from.SecretRef.Optional)
		data, err = in.secret(source.Object)
	}
	if optional && errors.Is(err, errNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		source.Key = key
		if err := e.set(Var{from.Prefix + key, data[key], source}); err != nil {
			return err
		}
	}
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }
