package podenv

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fetched is what came of fetching an object: the object, or why there is none.
// An Err that Is ErrNotFound or fs.ErrNotExist, or that is the API server's
// NotFound, says that it does not exist, and so does a nil Object without an
// error; any other says that nobody knows.
type Fetched[T any] struct {
	Object T
	Err    error
}

var (
	// ErrNoObjects is why a variable that comes from an object can't be had:
	// nothing was wired that gets one (pe-6).
	ErrNoObjects = errors.New("no kubeClient defined")

	// ErrNotFound is why a variable can't be had: there is no such object.
	ErrNotFound = errors.New("not found")
)

// configMap returns the data of a ConfigMap; binary data is for volumes (pe-3).
func (f Facts) configMap(name string) (map[string]string, error) {
	got, known := f.ConfigMaps[name]
	if err := f.missing("configMap", name, f.ConfigMaps == nil, known, got.Object == nil, got.Err); err != nil {
		return nil, err
	}
	return got.Object.Data, nil
}

// secret returns the data of a Secret.
func (f Facts) secret(name string) (map[string]string, error) {
	got, known := f.Secrets[name]
	if err := f.missing("secret", name, f.Secrets == nil, known, got.Object == nil, got.Err); err != nil {
		return nil, err
	}
	data := make(map[string]string, len(got.Object.Data))
	for key, value := range got.Object.Data {
		data[key] = string(value)
	}
	return data, nil
}

// missing tells why an object can't be had, or nil if it can.
func (f Facts) missing(kind, name string, noSource, known, empty bool, err error) error {
	switch {
	case noSource:
		return fmt.Errorf("couldn't get %s %v/%v, %w", kind, f.Pod.Namespace, name, ErrNoObjects)
	case !known:
		// Not the same as not found: an optional variable must not be lost
		// because somebody forgot to ask.
		return fmt.Errorf("couldn't get %s %v/%v: it was not fetched", kind, f.Pod.Namespace, name)
	case notFound(err), err == nil && empty:
		return fmt.Errorf("%s %q %w", strings.ToLower(kind), name, ErrNotFound)
	case err != nil:
		return fmt.Errorf("couldn't get %s %v/%v: %w", kind, f.Pod.Namespace, name, err)
	}
	return nil
}

// notFound reports whether err says that a thing does not exist. An error of the
// API server is known by what it can do, not by its type, whose package is heavy.
func notFound(err error) bool {
	var api interface{ Status() metav1.Status }
	return errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist) ||
		errors.As(err, &api) && api.Status().Reason == metav1.StatusReasonNotFound
}

// keyOf returns the value of a key, and whether there is one. A key that is
// missing is an error unless it is optional (pe-6).
func keyOf(data map[string]string, err error, optional bool, missing, key, namespace, name string) (string, bool, error) {
	if err != nil {
		if optional && errors.Is(err, ErrNotFound) {
			return "", false, nil
		}
		return "", false, err
	}
	value, ok := data[key]
	if !ok && !optional {
		return "", false, fmt.Errorf(missing, key, namespace, name)
	}
	return value, ok, nil
}

// Needed is what has to be fetched before an environment can be made, each once,
// in the order in which the container first names it.
type Needed struct {
	ConfigMaps []Need
	Secrets    []Need
	Files      []FileNeed
}

// A Need is an object of the pod's namespace. Optional: all that refer to it can
// do without.
type Need struct {
	Name     string
	Optional bool
}

// A FileNeed is a file in one of the pod's volumes; ReadFile reads it.
type FileNeed struct {
	File
	Optional bool
}

// Needs returns what the environment of container c of pod refers to.
func Needs(pod *v1.Pod, c *v1.Container) Needed {
	var n Needed
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			n.ConfigMaps = need(n.ConfigMaps, ref.Name, is(ref.Optional))
		} else if ref := c.EnvFrom[i].SecretRef; ref != nil {
			n.Secrets = need(n.Secrets, ref.Name, is(ref.Optional))
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		switch s := sourceOf(i, from); s.Kind {
		case ConfigMap:
			n.ConfigMaps = need(n.ConfigMaps, s.Object, is(from.ConfigMapKeyRef.Optional))
		case Secret:
			n.Secrets = need(n.Secrets, s.Object, is(from.SecretKeyRef.Optional))
		case EnvFile:
			ref := from.FileKeyRef
			if checkFile(pod, ref) == nil { // the others fail without being read
				n.Files = needFile(n.Files, File{ref.VolumeName, ref.Path}, is(ref.Optional))
			}
		}
	}
	return n
}

func need(list []Need, name string, optional bool) []Need {
	for i := range list {
		if list[i].Name == name {
			list[i].Optional = list[i].Optional && optional
			return list
		}
	}
	return append(list, Need{name, optional})
}

func needFile(list []FileNeed, file File, optional bool) []FileNeed {
	for i := range list {
		if list[i].File == file {
			list[i].Optional = list[i].Optional && optional
			return list
		}
	}
	return append(list, FileNeed{file, optional})
}
