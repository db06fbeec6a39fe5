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
	facts := podenv.Facts{
		Pod: s.pod, PodIPs: s.podIPs(), HostIPs: s.r.cfg.Node.IPs(), Allocatable: s.r.cfg.Node.Allocatable,
		Files: map[podenv.File]podenv.Fetched[[]byte]{},
	}
	needs := podenv.Needs(s.pod, c)
	for _, n := range needs.Files {
		var got podenv.Fetched[[]byte]
		v, err := s.ready(n.Volume)
		if err == nil {
			got.Object, err = podenv.ReadFile(v.Path, n.Path)
		}
		got.Err = err
		facts.Files[n.File] = got
	}
	if objects := s.r.cfg.Providers.Objects; objects != nil {
		facts.ConfigMaps = fetched(needs.ConfigMaps, func(name string) (*v1.ConfigMap, error) {
			return objects.ConfigMap(ctx, s.pod.Namespace, name)
		})
		facts.Secrets = fetched(needs.Secrets, func(name string) (*v1.Secret, error) {
			return objects.Secret(ctx, s.pod.Namespace, name)
		})
		var ok bool
		facts.Services, ok = objects.Services(ctx, s.pod.Namespace)
		facts.ServicesPending = !ok
	}
	return podenv.Make(facts, c)
}

func fetched[T any](needs []podenv.Need, get func(name string) (T, error)) map[string]podenv.Fetched[T] {
	got := make(map[string]podenv.Fetched[T], len(needs))
	for _, n := range needs {
		object, err := get(n.Name)
		got[n.Name] = podenv.Fetched[T]{Object: object, Err: err}
	}
	return got
}
