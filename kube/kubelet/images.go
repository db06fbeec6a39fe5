package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/node"
)

// nodeImages manages the images of the node. A nil *nodeImages is that of plain processes,
// which have no images.
type nodeImages struct{ collector *imagegc.Manager }

// newImages constructs the image garbage collector.
func newImages(ctx context.Context, b base, rt podRuntime, processes bool) (*nodeImages, error) {
	if processes {
		return nil, nil
	}
	keep, err := pauseImage(ctx, b, rt)
	if err != nil {
		return nil, err
	}
	cfg := imagegc.Config{
		Store: rt, Space: imagegc.SpaceOf(rt), Path: filepath.Join(b.cfg.RootDir, "images.json"),
		Policy: imagegc.Policy{
			Keep:        keep,
			HighPercent: b.k.ImageGCHighThresholdPercent, LowPercent: b.k.ImageGCLowThresholdPercent,
			MinAge: b.k.ImageMinimumGCAge.Duration, MaxAge: b.k.ImageMaximumGCAge.Duration,
		},
		Pods:      func() ([]*v1.Pod, bool) { return b.pods.active(), b.pods.Synced() },
		Consumers: diskConsumers(b, rt),
		Node:      b.nodeRef, Record: b.record, Logger: b.logger,
		Hooks: b.metrics.ImageGC().Join(b.traces.images()),
	}
	if err := compose.Apply(b.cfg.Adjust, "Images", &cfg); err != nil {
		return nil, err
	}
	gc, err := imagegc.New(cfg)
	return &nodeImages{gc}, err
}

// pauseImage returns the image of sandboxes. No container uses it, and not every runtime
// reports that it must stay (rule ig-19).
func pauseImage(ctx context.Context, b base, rt podRuntime) ([]string, error) {
	name := b.cfg.Runtime.PauseImage
	if name == "" {
		var err error
		if name, err = rt.SandboxImage(ctx); err != nil {
			b.logger.Warn("Failed to read the image of sandboxes from the runtime", "err", err)
		}
	}
	if name == "" {
		return nil, nil // a runtime that does not report it pins it
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return nil, fmt.Errorf("Config.Runtime.PauseImage: %q is not an image: %w", name, err)
	}
	return []string{reference.TagNameOnly(named).String()}, nil
}

// diskConsumers returns what else uses the disk of images, for messages.
func diskConsumers(b base, rt podRuntime) func(context.Context) ([]imagegc.Consumer, error) {
	under := func(path ...string) string { return strings.TrimPrefix(filepath.ToSlash(filepath.Join(path...)), "/") }
	return func(ctx context.Context) ([]imagegc.Consumer, error) {
		consumers, err := imagegc.DirUsage(ctx, os.DirFS("/"), map[string][]string{
			"logs of pods":     {under(b.k.PodLogsDir)},
			"emptyDir volumes": {under(b.cfg.RootDir, "pods", "*", "volumes", "kubernetes.io~empty-dir")},
		})
		_, containers, fsErr := rt.ImageFS(ctx)
		for _, fs := range containers {
			consumers = append(consumers, imagegc.Consumer{Name: "container layers", Bytes: deref(fs.Bytes)})
		}
		return consumers, errors.Join(err, fsErr)
	}
}

// manager returns the garbage collector; nil if there are no images.
func (i *nodeImages) manager() *imagegc.Manager {
	if i == nil {
		return nil
	}
	return i.collector
}

// forNode returns the images of the node status (rule ns-15): those of the runtime where
// none are collected, and none with an error or a maximum of 0.
func (i *nodeImages) forNode(s services, most int) func(context.Context) ([]node.Image, error) {
	if most == 0 {
		return func(context.Context) ([]node.Image, error) { return nil, nil }
	}
	if i == nil {
		return func(ctx context.Context) ([]node.Image, error) {
			list, err := s.Images.ListImages(ctx, nil)
			var out []node.Image
			for _, image := range list {
				out = append(out, node.Image{ID: image.Id, Digests: image.RepoDigests, Tags: image.RepoTags, Size: int64(image.Size)})
			}
			return out, err
		}
	}
	return func(ctx context.Context) ([]node.Image, error) {
		var out []node.Image
		for _, image := range i.collector.NodeImages(ctx, most) {
			out = append(out, node.Image{Digests: image.Names, Size: image.SizeBytes})
		}
		return out, nil
	}
}

// deleteUnused deletes unused images under disk pressure.
func (i *nodeImages) deleteUnused(ctx context.Context) error {
	if i == nil {
		return nil
	}
	_, err := i.collector.DeleteUnused(ctx)
	return err
}

// podBytes returns the size of the images of a pod.
func (i *nodeImages) podBytes(ctx context.Context, pod *v1.Pod) int64 {
	if i == nil {
		return 0
	}
	return i.collector.PodBytes(ctx, pod)
}

func (i *nodeImages) components() []component {
	if i == nil {
		return nil
	}
	return []component{i.collector.Run}
}
