package cri

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podenv"
)

// Objects provides the objects that pods refer to by name. SyncPod calls its methods once
// per object and container to create. They may block until ctx is done. The returned
// objects are not modified.
//
// If an object does not exist, the error must have the API status reason NotFound, or
// errors.Is(err, fs.ErrNotExist) must be true: optional references are then skipped.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)

	// Services returns the services for environment variables: all of the namespace,
	// and the service kubernetes of the namespace default. ok is false until they
	// have been read once: until then only containers of static pods are created.
	Services(ctx context.Context, namespace string) (list []*v1.Service, ok bool)
}

// environment returns the environment of container c. It reads the objects and files that
// it refers to.
func (s *podSync) environment(ctx context.Context, c *v1.Container) (*podenv.Env, error) {
	in := podenv.Inputs{
		Pod: s.pod, PodIPs: s.podIPs(), HostIPs: s.r.cfg.Node.IPs(), Allocatable: s.r.cfg.Node.Allocatable,
		Files: map[podenv.File]podenv.Fetched[[]byte]{},
	}
	configMaps, secrets, files := podenv.References(s.pod, c)
	for _, f := range files {
		var got podenv.Fetched[[]byte]
		v, err := s.ready(f.Volume)
		if err == nil {
			got.Object, err = podenv.ReadFile(v.Path, f.Path)
		}
		got.Err = err
		in.Files[f] = got
	}
	if objects := s.r.cfg.Providers.Objects; objects != nil {
		in.ConfigMaps = fetched(configMaps, func(name string) (*v1.ConfigMap, error) {
			return objects.ConfigMap(ctx, s.pod.Namespace, name)
		})
		in.Secrets = fetched(secrets, func(name string) (*v1.Secret, error) {
			return objects.Secret(ctx, s.pod.Namespace, name)
		})
		var ok bool
		in.Services, ok = objects.Services(ctx, s.pod.Namespace)
		in.ServicesPending = !ok
	}
	return podenv.New(in, c)
}

func fetched[T any](names []string, get func(name string) (T, error)) map[string]podenv.Fetched[T] {
	got := make(map[string]podenv.Fetched[T], len(names))
	for _, name := range names {
		object, err := get(name)
		got[name] = podenv.Fetched[T]{Object: object, Err: err}
	}
	return got
}
