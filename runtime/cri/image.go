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

// ensure pulls the image of container c if its pull policy requires it, and returns the
// image's name in the runtime and its default user. The error is a *startError.
func (s *podSync) ensure(ctx context.Context, c *v1.Container) (*runtimeapi.ImageSpec, imageUser, error) {
	image, err := s.prefetch.get(c.Name, func() (images.Image, error) { return s.r.images.Ensure(ctx, s.imageOf(c)) })
	return image.Spec, imageUser{UID: image.UID, Name: image.Username}, imageError(err)
}

// imageOf returns the request for the image of container c.
func (s *podSync) imageOf(c *v1.Container) images.Request {
	ref := runtime.ContainerRef(s.pod, c.Name)
	return images.Request{
		Pod: s.pod, Image: c.Image, PullPolicy: c.ImagePullPolicy, Sandbox: s.config, RuntimeHandler: s.imageHandler(),
		Event: func(eventType, reason, message string) { s.event(ref, eventType, reason, message) },
	}
}

// imageHandler returns the runtime handler of image requests, "" unless images are stored
// per handler. An unknown class is an error of the sandbox, before any pull.
func (s *podSync) imageHandler() string {
	if !s.r.cfg.Pulls.ByRuntimeHandler {
		return ""
	}
	name, _ := s.handlerName()
	return name
}

// imageError converts an error of the image manager to a *startError.
func imageError(err error) error {
	if why, ok := errors.AsType[*images.Error](err); ok {
		return &startError{reason: why.Reason, message: why.Message, until: why.Until, err: why}
	}
	return err
}

// volumeImages pulls the images of the pod's image volumes. A failed pull fails the
// containers that mount the volume.
func (s *podSync) volumeImages(ctx context.Context) {
	s.imageVolumes = s.r.images.EnsureVolumes(ctx, images.Request{
		Pod: s.pod, Sandbox: s.config, RuntimeHandler: s.imageHandler(),
		Event: func(eventType, reason, message string) {
			s.event(runtime.PodRef(s.pod), eventType, reason, message)
		},
	})
}

// A prefetch contains the pulls of a pod that run ahead of the starts of its containers.
// The zero value has none.
type prefetch struct {
	all  sync.WaitGroup
	stop context.CancelFunc // cancels the remaining pulls
	each map[string]*fetch  // by container
}

// A fetch is one pull. Its result may be read when done is closed.
type fetch struct {
	done  chan struct{}
	image images.Image
	err   error
}

// pullAhead starts to pull the images of all containers of a new pod.
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

// wait blocks until all pulls have returned. Without a sandbox it cancels them.
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

// get returns the result of the container's pull, or of calling get if none was
// started.
func (a *prefetch) get(container string, get func() (images.Image, error)) (images.Image, error) {
	if e := a.each[container]; e != nil {
		<-e.done // returns when ctx is done
		return e.image, e.err
	}
	return get()
}

// ResetBackoff ends the back-off of a container that crashes or whose image could not be
// pulled: the next SyncPod starts it. An empty container means all containers of the
// pod.
func (r *Runtime) ResetBackoff(pod *v1.Pod, container string) {
	r.backoff.Reset(pod.UID, container, time.Now())
	image := ""
	if c := containerSpec(pod, container); c != nil {
		image = c.Image
	}
	r.images.ResetBackoff(pod.UID, image)
}
