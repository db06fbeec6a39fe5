package podenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fetched is the result of reading an object. The object does not exist if Err is fs.ErrNotExist
// (as reported by errors.Is) or an API error with the reason NotFound, or if both fields are nil.
// Any other Err means that it could not be read.
type Fetched[T any] struct {
	Object T
	Err    error
}

// Objects returns the objects that variables refer to. Its methods may block until ctx is done. The
// returned objects are not modified. If an object does not exist, the error must satisfy [IsNotFound].
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)

	// Services returns the services for environment variables: all of the namespace,
	// and the service kubernetes of the namespace default. ok is false until they
	// have been read once: until then only containers of static pods are created.
	Services(ctx context.Context, namespace string) (list []*v1.Service, ok bool)
}

// Fetch sets ConfigMaps, Secrets and Services to the objects for container c of in.Pod. Errors are
// reported by [New].
func (in *Inputs) Fetch(ctx context.Context, objects Objects, c *v1.Container) {
	configMaps, secrets, _ := References(in.Pod, c)
	in.ConfigMaps = fetched(configMaps, func(name string) (*v1.ConfigMap, error) { return objects.ConfigMap(ctx, in.Pod.Namespace, name) })
	in.Secrets = fetched(secrets, func(name string) (*v1.Secret, error) { return objects.Secret(ctx, in.Pod.Namespace, name) })
	var ok bool
	in.Services, ok = objects.Services(ctx, in.Pod.Namespace)
	in.ServicesPending = !ok
}

func fetched[T any](names []string, get func(name string) (T, error)) map[string]Fetched[T] {
	got := make(map[string]Fetched[T], len(names))
	for _, name := range names {
		object, err := get(name)
		got[name] = Fetched[T]{Object: object, Err: err}
	}
	return got
}

// ErrNoClient is returned by [New] if a variable refers to a ConfigMap or Secret and Inputs has a
// nil map of these.
var ErrNoClient = errors.New("no kubeClient defined")

// errNotFound means that an object or file does not exist. It matches fs.ErrNotExist.
var errNotFound error = notFoundError{}

type notFoundError struct{}

func (notFoundError) Error() string        { return "not found" }
func (notFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// configMap returns the data of a ConfigMap. Its binary data is available only in volumes.
func (in Inputs) configMap(name string) (map[string]string, error) {
	got, ok := in.ConfigMaps[name]
	if err := in.checkFetched("configMap", name, in.ConfigMaps == nil, ok, got.Object == nil, got.Err); err != nil {
		return nil, err
	}
	return got.Object.Data, nil
}

// secret returns the data of a Secret.
func (in Inputs) secret(name string) (map[string]string, error) {
	got, ok := in.Secrets[name]
	if err := in.checkFetched("secret", name, in.Secrets == nil, ok, got.Object == nil, got.Err); err != nil {
		return nil, err
	}
	data := make(map[string]string, len(got.Object.Data))
	for key, value := range got.Object.Data {
		data[key] = string(value)
	}
	return data, nil
}

// checkFetched returns the error for an object that does not exist or could not be read, else nil.
func (in Inputs) checkFetched(kind, name string, noClient, ok, empty bool, err error) error {
	switch {
	case noClient:
		return fmt.Errorf("couldn't get %s %v/%v, %w", kind, in.Pod.Namespace, name, ErrNoClient)
	case !ok:
		// Not the same as not found: an optional variable must not be dropped
		// because the caller did not read its object.
		return fmt.Errorf("couldn't get %s %v/%v: not in Inputs", kind, in.Pod.Namespace, name)
	case IsNotFound(err), err == nil && empty:
		return fmt.Errorf("%s %q %w", strings.ToLower(kind), name, errNotFound)
	case err != nil:
		return fmt.Errorf("couldn't get %s %v/%v: %w", kind, in.Pod.Namespace, name, err)
	}
	return nil
}

// IsNotFound reports whether err means that an object does not exist: it is fs.ErrNotExist, or an
// error with a Status method whose Reason is metav1.StatusReasonNotFound, as the API server's are.
func IsNotFound(err error) bool {
	// The package that declares the type of the API server's errors is heavy.
	var api interface{ Status() metav1.Status }
	return errors.Is(err, fs.ErrNotExist) ||
		errors.As(err, &api) && api.Status().Reason == metav1.StatusReasonNotFound
}

// keyOf returns the value of a key, and whether it exists. A missing key is an error in the format
// missing, unless it is optional.
func keyOf(data map[string]string, err error, optional bool, missing, key, namespace, name string) (string, bool, error) {
	if err != nil {
		if optional && errors.Is(err, errNotFound) {
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

// References returns the objects that the environment of container c of pod refers to: the names of
// ConfigMaps and Secrets in the pod's namespace, and the env files in its volumes, which [ReadFile]
// reads. Each is listed once, in the order of the first reference in c. References that [New]
// rejects without reading the file are omitted.
func References(pod *v1.Pod, c *v1.Container) (configMaps, secrets []string, files []File) {
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].ConfigMapRef; ref != nil {
			configMaps = appendNew(configMaps, ref.Name)
		} else if ref := c.EnvFrom[i].SecretRef; ref != nil {
			secrets = appendNew(secrets, ref.Name)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		switch s := sourceOf(i, from); s.Kind {
		case kindConfigMap:
			configMaps = appendNew(configMaps, s.Object)
		case kindSecret:
			secrets = appendNew(secrets, s.Object)
		case kindFile:
			if ref := from.FileKeyRef; checkFile(pod, ref) == nil {
				files = appendNew(files, File{ref.VolumeName, ref.Path})
			}
		}
	}
	return configMaps, secrets, files
}

func appendNew[T comparable](list []T, item T) []T {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
