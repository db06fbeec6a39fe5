package cri

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podenv"
)

// Objects gets what the environment of containers refers to. It is called from
// the goroutines of SyncPod; the calls should answer from a cache, and must obey
// their context. What is returned is not changed. The error of an object that
// does not exist Is fs.ErrNotExist, or is the API server's NotFound; with any
// other, also an optional variable waits until there is an answer (pe-3).
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*v1.Secret, error)

	// Services returns at least those of the namespace and the service
	// kubernetes of the namespace default, and whether they have been read yet:
	// if not, pods that are not static wait (pe-1, pe-12). Who has none to tell
	// of returns nil and true.
	Services(namespace string) (list []*v1.Service, read bool)
}

// environment returns the environment of container c. It fetches what that
// refers to, and reads the env files.
func (s *step) environment(ctx context.Context, c *v1.Container) (*podenv.Env, error) {
	f := podenv.Facts{
		Pod: s.pod, PodIPs: s.podIPs(), HostIPs: s.r.cfg.Node.IPs(), Allocatable: s.r.cfg.Node.Allocatable,
		Files: map[podenv.File]podenv.Fetched[[]byte]{},
	}
	needs := podenv.Needs(s.pod, c)
	for _, n := range needs.Files {
		dir, err := s.hostPath(n.Volume)
		var data []byte
		if err == nil {
			data, err = podenv.ReadFile(dir, n.Path)
		}
		f.Files[n.File] = podenv.Fetched[[]byte]{Object: data, Err: err}
	}
	if objects := s.r.cfg.Objects; objects != nil {
		f.ConfigMaps = fetch(ctx, needs.ConfigMaps, s.pod.Namespace, objects.ConfigMap)
		f.Secrets = fetch(ctx, needs.Secrets, s.pod.Namespace, objects.Secret)
		list, read := objects.Services(s.pod.Namespace)
		f.Services, f.ServicesPending = list, !read
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return podenv.Make(f, c)
}

// fetch gets each object that is needed, and keeps the errors: what they mean is
// decided with the environment.
func fetch[T any](ctx context.Context, needs []podenv.Need, namespace string, get func(ctx context.Context, namespace, name string) (T, error)) map[string]podenv.Fetched[T] {
	all := make(map[string]podenv.Fetched[T], len(needs))
	for _, n := range needs {
		object, err := get(ctx, namespace, n.Name)
		all[n.Name] = podenv.Fetched[T]{Object: object, Err: err}
	}
	return all
}
