package images

import (
	"context"
	"sync"
)

// A Result is the result of one Request.
type Result struct {
	Image Image
	Err   error // an *Error, or nil
}

// EnsureAll calls [Manager.Ensure] concurrently for each request, blocks until all have
// returned, and returns the results in the order of the requests. Config.MaxParallel limits
// the concurrent pulls; if it is one, the requests are handled in order.
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

// EnsureVolumes requests the images of the pod's image volumes and returns the results by
// volume name; nil if it has none. Image and PullPolicy of req are ignored: each volume has its
// own. Errors are in the results, because they affect only the containers that mount the
// volume.
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
