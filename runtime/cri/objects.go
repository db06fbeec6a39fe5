package cri

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/podenv"
)

// Objects provides the objects that pods refer to by name. SyncPod calls its methods once
// per object and container to create.
type Objects = podenv.Objects

// environment returns the environment of container c. It reads the objects and files that
// it refers to.
func (s *podSync) environment(ctx context.Context, c *v1.Container) (*podenv.Env, error) {
	in := podenv.Inputs{
		Pod: s.pod, PodIPs: s.podIPs(), HostIPs: s.r.cfg.Node.IPs(), Allocatable: s.r.cfg.Node.Allocatable,
		Files: map[podenv.File]podenv.Fetched[[]byte]{},
	}
	_, _, files := podenv.References(s.pod, c)
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
		in.Fetch(ctx, objects, c)
	}
	return podenv.New(in, c)
}
