package podenv

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Var is one variable, and where its value came from.
type Var struct {
	Name, Value string
	From        Source
}

// An Env is an environment in the order in which its names were first defined
// (pe-10), each name once.
type Env struct {
	vars  []Var
	index map[string]int
	size  int // bytes of all values
}

// Facts are what variables can refer to.
type Facts struct {
	Pod     *v1.Pod
	PodIPs  []string // as the sandbox has them, in any order
	HostIPs []string // the node's, the primary one first

	// Allocatable is what the node has for pods: the limits of a container
	// that has none (pe-8).
	Allocatable v1.ResourceList

	// ConfigMaps and Secrets of the pod's namespace, by name: all that Needs
	// names. A nil map says that nothing here fetches any, and a variable that
	// refers to one fails with ErrNoObjects.
	ConfigMaps map[string]Fetched[*v1.ConfigMap]
	Secrets    map[string]Fetched[*v1.Secret]

	// Files are the env files that Needs names (pe-9), nil as above.
	Files map[File]Fetched[[]byte]

	// Services that the pod may see, in any order and of any namespace: those
	// of its own namespace, if spec.enableServiceLinks is true or not set, and
	// the one called kubernetes in the namespace default (pe-12). Nil: none.
	Services []*v1.Service

	// ServicesPending says that Services have not been read yet. An
	// environment without them would be wrong for as long as the container
	// runs, so that Make refuses to make one, except for static pods (pe-1).
	ServicesPending bool
}

// ErrServicesPending is why there is no environment yet (pe-1).
var ErrServicesPending = errors.New("services have not yet been read at least once, cannot construct envvars")

// Make returns the environment of container c, which may be one of any kind:
// envFrom in order, then env in order, then the services' variables under names
// that are free by then (pe-2). The error's text is for the container's status,
// under the reason CreateContainerConfigError (pe-11).
//
// The kubelet refuses a pod that doesn't say whether it wants service links
// (pe-1); here it gets what the API server would have filled in: it does.
func Make(f Facts, c *v1.Container) (*Env, error) {
	if f.ServicesPending && !runtime.IsStatic(f.Pod) {
		return nil, ErrServicesPending
	}
	e := &Env{index: map[string]int{}}
	for i := range c.EnvFrom {
		if err := e.setFrom(f, i, &c.EnvFrom[i]); err != nil {
			return nil, err
		}
	}
	links := serviceLinks(f)
	lookup := func(name string) (string, bool) { // pe-4
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
			value, found, err = valueFrom(f, c, v)
		} else if value, err = expand(v.Value, MaxSize-e.size, lookup); err != nil { // only literal values are expanded (pe-5)
			err = fmt.Errorf("%v: the environment is %w", sourceOf(i, nil), err)
		}
		if err != nil {
			return nil, err
		}
		if !found {
			continue // optional; what envFrom has under that name stays
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

// Vars returns the variables in the order in which they were first defined. They
// are shared: don't change them.
func (e *Env) Vars() []Var { return e.vars }

// EnvVars returns the variables as a pod's spec would have them, in a slice of
// the caller's own.
func (e *Env) EnvVars() []v1.EnvVar {
	list := make([]v1.EnvVar, 0, len(e.vars))
	for _, v := range e.vars {
		list = append(list, v1.EnvVar{Name: v.Name, Value: v.Value})
	}
	return list
}

// Get returns the value of a variable.
func (e *Env) Get(name string) (string, bool) {
	i, ok := e.index[name]
	if !ok {
		return "", false
	}
	return e.vars[i].Value, true
}

// ExpandAll expands each of args over the environment (pe-13). It returns
// ErrTooLarge if the results together exceed [MaxSize].
func (e *Env) ExpandAll(args []string) ([]string, error) { return ExpandAll(args, e.Get) }

// set defines a variable that somebody wrote down, unless a process could not
// have it: the system ends a name at "=" and either at a zero byte.
func (e *Env) set(v Var) error {
	switch {
	case v.Name == "":
		return fmt.Errorf("%v: a variable without a name", v.From)
	case strings.ContainsAny(v.Name, "=\x00"):
		return fmt.Errorf("%v: %q is no name of a variable", v.From, v.Name)
	case strings.ContainsRune(v.Value, 0):
		return fmt.Errorf("%v: the value of %s has a zero byte", v.From, v.Name)
	case len(v.Value) > MaxSize-e.size:
		return fmt.Errorf("%v: the environment is %w", v.From, ErrTooLarge)
	}
	e.put(v)
	return nil
}

// put defines a variable, in the place of one of the same name.
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

// setFrom defines all that an entry of envFrom has, sorted by key (pe-3).
func (e *Env) setFrom(f Facts, i int, from *v1.EnvFromSource) error {
	source := Source{EnvFrom: true, Index: i}
	data, optional := map[string]string{}, false
	var err error
	switch {
	case from.ConfigMapRef != nil:
		source.Kind, source.Object, optional = ConfigMap, from.ConfigMapRef.Name, is(from.ConfigMapRef.Optional)
		data, err = f.configMap(source.Object)
	case from.SecretRef != nil:
		source.Kind, source.Object, optional = Secret, from.SecretRef.Name, is(from.SecretRef.Optional)
		data, err = f.secret(source.Object)
	}
	if optional && errors.Is(err, ErrNotFound) {
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

func is(b *bool) bool { return b != nil && *b }
