package cri

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// ensure sees that the image of container c is present as its pull policy says,
// and returns how the runtime names it and who it runs as. The error is a
// *startError.
func (s *podSync) ensure(ctx context.Context, c *v1.Container) (*runtimeapi.ImageSpec, imageUser, error) {
	image, err := s.prefetch.get(c.Name, func() (images.Image, error) { return s.r.images.Ensure(ctx, s.imageOf(c)) })
	return image.Spec, imageUser{UID: image.UID, Name: image.Username}, imageError(err)
}

// imageOf asks for the image of container c.
func (s *podSync) imageOf(c *v1.Container) images.Request {
	ref := runtime.ContainerRef(s.pod, c.Name)
	return images.Request{
		Pod: s.pod, Image: c.Image, PullPolicy: c.ImagePullPolicy, Sandbox: s.config, RuntimeHandler: s.imageHandler(),
		Event: func(eventType, reason, message string) { s.event(ref, eventType, reason, message) },
	}
}

// imageHandler returns the runtime handler that images are for, if the runtime
// tells them apart by that. Of a class that is not known there is no sandbox, and
// nothing is pulled for one.
func (s *podSync) imageHandler() string {
	if !s.r.cfg.Pulls.ByRuntimeHandler {
		return ""
	}
	name, _ := s.handlerName()
	return name
}

// imageError puts what the image manager says of a failure in the terms of a
// start.
func imageError(err error) error {
	if why, ok := errors.AsType[*images.Error](err); ok {
		return &startError{reason: why.Reason, message: why.Message, until: why.Until, err: why}
	}
	return err
}

// volumeImages sees that the images which are volumes of the pod are present.
// What is missing is the matter of the containers that mount it (img-16).
func (s *podSync) volumeImages(ctx context.Context) {
	s.imageVolumes = s.r.images.EnsureVolumes(ctx, images.Request{
		Pod: s.pod, Sandbox: s.config, RuntimeHandler: s.imageHandler(),
		Event: func(eventType, reason, message string) {
			s.event(runtime.PodRef(s.pod), eventType, reason, message)
		},
	})
}

// An ahead is the images of a pod that are pulled before their containers'
// turn. The zero value has none.
type prefetch struct {
	all  sync.WaitGroup
	stop context.CancelFunc // calls off what has not come yet
	each map[string]*fetch  // by container
}

// A fetch is one such image. What came of it may be read once done is closed.
type fetch struct {
	done  chan struct{}
	image images.Image
	err   error
}

// pullAhead begins to pull the images of all containers of a pod that is new
// (lq-15, L-50).
func (s *podSync) pullAhead(ctx context.Context, starts []plan.Start) {
	ctx, s.prefetch.stop = context.WithCancel(ctx)
	s.prefetch.each = map[string]*fetch{}
	begin := func(c *v1.Container) {
		if s.prefetch.each[c.Name] != nil {
			return
		}
		e, req := &fetch{done: make(chan struct{})}, s.imageOf(c)
		s.prefetch.each[c.Name] = e
		s.prefetch.all.Go(func() {
			defer close(e.done)
			e.image, e.err = s.r.images.Ensure(ctx, req)
		})
	}
	for i := range starts {
		begin(starts[i].Container)
	}
	for i := range s.pod.Spec.InitContainers {
		begin(&s.pod.Spec.InitContainers[i])
	}
	for i := range s.pod.Spec.Containers {
		begin(&s.pod.Spec.Containers[i])
	}
}

// wait returns when nothing is being pulled any more. Without a sandbox there is
// nothing to pull for.
func (a *prefetch) wait(sandboxed bool) {
	if a.stop == nil {
		return
	}
	if !sandboxed {
		a.stop()
	}
	a.all.Wait()
	a.stop()
}

// of returns what came of an image that is pulled ahead, or else of getting it
// now.
func (a *prefetch) get(container string, get func() (images.Image, error)) (images.Image, error) {
	if e := a.each[container]; e != nil {
		<-e.done // it ends with ctx
		return e.image, e.err
	}
	return get()
}

// ResetBackoff lets a container that crashes, or whose image could not be pulled,
// be tried again at the next sync (L-51, L-52); an empty container means all of
// the pod's.
func (r *Runtime) ResetBackoff(pod *v1.Pod, container string) {
	r.backoff.Reset(pod.UID, container, time.Now())
	image := ""
	if c := containerSpec(pod, container); c != nil {
		image = c.Image
	}
	r.images.ResetBackoff(pod.UID, image)
}
