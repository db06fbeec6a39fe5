// Package podenv makes the environment of a container from its spec (rules pe-*
// of the behaviour). It is pure: what has to be fetched is asked of the caller.
package podenv

import (
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A Var is one variable.
type Var struct{ Name, Value string }

// An Env is an environment in the order of its definition (pe-10), each name
// once.
type Env struct {
	vars  []Var
	index map[string]int
}

// Facts are what variables can refer to.
type Facts struct {
	Pod     *v1.Pod
	PodIPs  []string // the primary one first
	HostIPs []string

	// Allocatable is what the node has for pods: the limits of a container
	// that has none (pe-8).
	Allocatable v1.ResourceList
}

// ErrNoObjects is why a variable that comes from a ConfigMap or Secret can't be
// had: nothing was wired that gets one (pe-6).
var ErrNoObjects = errors.New("no kubeClient defined")

// Make returns the environment of container c (pe-2 … pe-8).
func Make(f Facts, c *v1.Container) (*Env, error) {
	e := &Env{index: map[string]int{}}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef != nil {
			return nil, fmt.Errorf("couldn't get configMap %v/%v, %w", f.Pod.Namespace, from.ConfigMapRef.Name, ErrNoObjects)
		}
		if from.SecretRef != nil {
			return nil, fmt.Errorf("couldn't get secret %v/%v, %w", f.Pod.Namespace, from.SecretRef.Name, ErrNoObjects)
		}
	}
	for i := range c.Env {
		v := &c.Env[i]
		if v.ValueFrom == nil {
			e.set(v.Name, Expand(v.Value, e.Get)) // only literal values are expanded (pe-5)
			continue
		}
		value, err := valueFrom(f, c, v.ValueFrom)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", v.Name, err)
		}
		e.set(v.Name, value)
	}
	return e, nil
}

// Vars returns the variables in the order in which they were first defined. They
// are shared: don't change them.
func (e *Env) Vars() []Var { return e.vars }

// Get returns the value of a variable.
func (e *Env) Get(name string) (string, bool) {
	i, ok := e.index[name]
	if !ok {
		return "", false
	}
	return e.vars[i].Value, true
}

// ExpandAll expands each of args over the environment (pe-13).
func (e *Env) ExpandAll(args []string) []string {
	var out []string
	for _, a := range args {
		out = append(out, Expand(a, e.Get))
	}
	return out
}

func (e *Env) set(name, value string) {
	if i, ok := e.index[name]; ok {
		e.vars[i].Value = value
		return
	}
	e.index[name] = len(e.vars)
	e.vars = append(e.vars, Var{name, value})
}

func valueFrom(f Facts, c *v1.Container, src *v1.EnvVarSource) (string, error) {
	switch {
	case src.FieldRef != nil:
		return field(f, src.FieldRef.FieldPath)
	case src.ResourceFieldRef != nil:
		return resourceField(f, c, src.ResourceFieldRef)
	case src.ConfigMapKeyRef != nil:
		return "", fmt.Errorf("couldn't get configMap %v/%v, %w", f.Pod.Namespace, src.ConfigMapKeyRef.Name, ErrNoObjects)
	case src.SecretKeyRef != nil:
		return "", fmt.Errorf("couldn't get secret %v/%v, %w", f.Pod.Namespace, src.SecretKeyRef.Name, ErrNoObjects)
	default:
		return "", errors.New("valueFrom names no source that is supported")
	}
}

// field returns the value of a fieldRef (pe-7).
func field(f Facts, path string) (string, error) {
	first := func(list []string) string {
		if len(list) == 0 {
			return ""
		}
		return list[0]
	}
	switch path {
	case "metadata.name":
		return f.Pod.Name, nil
	case "metadata.namespace":
		return f.Pod.Namespace, nil
	case "metadata.uid":
		return string(f.Pod.UID), nil
	case "spec.nodeName":
		return f.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return f.Pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(f.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(f.HostIPs, ","), nil
	case "status.podIP":
		return first(f.PodIPs), nil
	case "status.podIPs":
		return strings.Join(f.PodIPs, ","), nil
	}
	if key, ok := subscript(path, "metadata.labels"); ok {
		return f.Pod.Labels[key], nil
	}
	if key, ok := subscript(path, "metadata.annotations"); ok {
		return f.Pod.Annotations[key], nil
	}
	return "", fmt.Errorf("fieldRef: unsupported fieldPath: %v", path)
}

// subscript returns the key of a path such as metadata.labels['key'].
func subscript(path, name string) (string, bool) {
	key, ok := strings.CutPrefix(path, name+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, "']")
}
