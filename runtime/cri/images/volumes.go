package images

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// A Result is what came of one Request.
type Result struct {
	Image Image
	Err   error // an *Error, or nil
}

// EnsureAll asks for all of several images, as [Manager.Ensure] for each, and
// returns when every answer is there, in the order of the requests (lq-15). How
// many pulls run at once is for Config.MaxParallel to say; where it is one, they
// run in the order of the requests.
func (m *Manager) EnsureAll(ctx context.Context, reqs []Request) []Result {
	results := make([]Result, len(reqs))
	one := func(i int) { results[i].Image, results[i].Err = m.Ensure(ctx, reqs[i]) }
	if cap(m.turns) == 1 {
		for i := range reqs {
			one(i)
		}
		return results
	}
	var all sync.WaitGroup
	for i := range reqs {
		all.Go(func() { one(i) })
	}
	all.Wait()
	return results
}

// EnsureVolumes asks for the images that are volumes of the pod (img-16), and
// returns the answers by the volumes' names; nil if it has none. Image and
// PullPolicy of the request do not count: each volume has its own. A volume
// without an image fails, and so on: all errors are in the results, since they
// concern only containers that mount the volume; see [VolumeError].
func (m *Manager) EnsureVolumes(ctx context.Context, req Request) map[string]Result {
	if req.Pod == nil {
		return nil
	}
	var names []string
	var reqs []Request
	for i := range req.Pod.Spec.Volumes {
		v := &req.Pod.Spec.Volumes[i]
		if v.Image == nil {
			continue
		}
		req.Image, req.PullPolicy = v.Image.Reference, v.Image.PullPolicy
		names, reqs = append(names, v.Name), append(reqs, req)
	}
	if len(reqs) == 0 {
		return nil
	}
	results := make(map[string]Result, len(reqs))
	for i, result := range m.EnsureAll(ctx, reqs) {
		results[names[i]] = result
	}
	return results
}

// VolumeError returns why the container cannot have one of the volumes that it
// mounts, the first in its spec; nil if it can have all (img-16).
func VolumeError(c *v1.Container, volumes map[string]Result) error {
	for _, mount := range c.VolumeMounts {
		if err := volumes[mount.Name].Err; err != nil {
			return err
		}
	}
	return nil
}
