package cri

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Images implements [runtime.ImageStore].
func (r *Runtime) Images(ctx context.Context) ([]runtime.Image, error) {
	list, err := r.cfg.Images.ListImages(r.quiet(ctx), nil)
	if err != nil {
		return nil, fmt.Errorf("cri: list images: %w", err)
	}
	images := make([]runtime.Image, 0, len(list))
	for _, i := range list {
		if i.GetId() == "" {
			continue // without an ID it can be neither used nor removed
		}
		images = append(images, runtime.Image{
			ID: i.Id, Tags: i.RepoTags, Digests: i.RepoDigests, Size: i.Size, Pinned: i.Pinned,
			RuntimeHandler: i.GetSpec().GetRuntimeHandler(),
		})
	}
	return images, nil
}

// ImageUses implements [runtime.ImageStore] with one call, and one more for each container whose
// status PodStatus has not read: image volumes are only in the status of a container.
func (r *Runtime) ImageUses(ctx context.Context) ([]runtime.ImageUse, error) {
	ctx = r.quiet(ctx)
	containers, err := r.cfg.Runtime.ListContainers(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("cri: list containers: %w", err)
	}
	var uses []runtime.ImageUse
	for _, c := range containers {
		if c == nil {
			continue
		}
		use := runtime.ImageUse{
			ID: c.ImageId, Ref: c.ImageRef, Name: c.GetImage().GetImage(),
			Namespace: c.Labels[podconfig.LabelPodNamespace], Pod: c.Labels[podconfig.LabelPodName], Container: c.GetMetadata().GetName(),
		}
		uses = append(uses, use)
		mounted, ok := r.imageMounts.get(types.UID(c.Labels[podconfig.LabelPodUID]), c.Id)
		if !ok {
			answer, err := r.cfg.Runtime.ContainerStatus(ctx, c.Id, false)
			if isNotFound(err) || err != nil && c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
				continue // removed meanwhile, or exited and without mounts
			}
			if err != nil {
				return nil, fmt.Errorf("cri: container status: %w", err)
			}
			mounted = mountedImages(answer.GetStatus())
		}
		for _, image := range mounted {
			use.ID, use.Ref, use.Name, use.Volume = "", "", image, true
			uses = append(uses, use)
		}
	}
	return uses, nil
}

// RemoveImage implements [runtime.ImageStore].
func (r *Runtime) RemoveImage(ctx context.Context, image runtime.Image) error {
	spec := &runtimeapi.ImageSpec{Image: image.ID, RuntimeHandler: image.RuntimeHandler}
	if err := r.cfg.Images.RemoveImage(r.quiet(ctx), spec); err != nil && !isNotFound(err) {
		return fmt.Errorf("cri: remove image %s: %w", image.ID, err)
	}
	return nil
}

// ForgetImages deletes the pull records of removed images. present contains the IDs of all
// images in the runtime, listed after the time before. It must be called after images were
// removed.
func (r *Runtime) ForgetImages(present []string, before time.Time) error {
	return r.images.Prune(present, before)
}
