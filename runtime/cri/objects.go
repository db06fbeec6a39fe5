package cri

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podenv"
)

// Objects get what pods refer to by name. Their methods are called by SyncPod,
// once for each object and container that is about to be made, and may wait until
// ctx ends. What they return is shared: it isn't changed.
//
// Of an object that does not exist the error is one that the API server gives
// (StatusReasonNotFound), or that Is fs.ErrNotExist: what is optional is then
// left out (pe-6).
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)

	// Services returns those that variables are made from: all of the
	// namespace, and the one called kubernetes in the namespace default
	// (pe-12). ok is false as long as they have not been read once: then no
	// container is made (pe-1), but those of static pods.
	Services(ctx context.Context, namespace string) (list []*v1.Service, ok bool)
}

// environment makes the environment of container c, for which it fetches what it
// refers to.
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
