package cri

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// ensure sees that the image of container c is present as its pull policy says,
// and returns how the runtime names it and who it runs as. The error is a
// *startError.
func (s *step) ensure(ctx context.Context, c *v1.Container) (*runtimeapi.ImageSpec, imageUser, error) {
	ref := runtime.ContainerRef(s.pod, c.Name)
	image, err := s.r.images.Ensure(ctx, images.Request{
		Pod: s.pod, Image: c.Image, PullPolicy: c.ImagePullPolicy, Sandbox: s.config,
		Event: func(eventType, reason, message string) { s.event(ref, eventType, reason, message) },
	})
	if why, ok := errors.AsType[*images.Error](err); ok {
		return nil, imageUser{}, &startError{reason: why.Reason, message: why.Message, until: why.Until, err: why}
	}
	return image.Spec, imageUser{uid: image.UID, name: image.Username}, err
}
