package machine

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
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// NodeImages manages the images of the node. A nil *NodeImages manages none: plain processes have no
// images, and those of Config.Runtime.New are not on this machine.
type NodeImages struct{ collector *imagegc.Manager }

// newImages constructs the image garbage collector.
func newImages(ctx context.Context, b stores.Base, rt *cri.Runtime, processes bool) (*NodeImages, error) {
	if processes {
		return nil, nil
	}
	keep, err := pauseImage(ctx, b, rt)
	if err != nil {
		return nil, err
	}
	cfg := imagegc.Config{
		Store: rt, Space: imagegc.SpaceOf(rt), Path: filepath.Join(b.Config.RootDir, "images.json"),
		Policy: imagegc.Policy{
			Keep:        keep,
			HighPercent: b.Configuration.ImageGCHighThresholdPercent, LowPercent: b.Configuration.ImageGCLowThresholdPercent,
			MinAge: b.Configuration.ImageMinimumGCAge.Duration, MaxAge: b.Configuration.ImageMaximumGCAge.Duration,
		},
		Pods:      func() ([]*v1.Pod, bool) { return b.Pods.Active(), b.Pods.Synced() },
		Consumers: diskConsumers(b, rt),
		Node:      b.NodeRef, Record: b.Record, Logger: b.Logger,
		Hooks: b.Metrics.ImageGC().Join(b.Traces.Images()),
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	gc, err := imagegc.New(cfg)
	return &NodeImages{gc}, err
}

// pauseImage returns the image of sandboxes. No container uses it, and not every runtime
// reports that it must stay (rule ig-19).
func pauseImage(ctx context.Context, b stores.Base, rt *cri.Runtime) ([]string, error) {
	name := b.Config.Runtime.PauseImage
	if name == "" {
		var err error
		if name, err = rt.SandboxImage(ctx); err != nil {
			b.Logger.Warn("Failed to read the image of sandboxes from the runtime", "err", err)
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
func diskConsumers(b stores.Base, rt *cri.Runtime) func(context.Context) ([]imagegc.Consumer, error) {
	under := func(path ...string) string { return strings.TrimPrefix(filepath.ToSlash(filepath.Join(path...)), "/") }
	return func(ctx context.Context) ([]imagegc.Consumer, error) {
		consumers, err := imagegc.DirUsage(ctx, os.DirFS("/"), map[string][]string{
			"logs of pods":     {under(b.Configuration.PodLogsDir)},
			"emptyDir volumes": {under(b.Config.RootDir, "pods", "*", "volumes", "kubernetes.io~empty-dir")},
		})
		_, containers, fsErr := rt.ImageFS(ctx)
		for _, fs := range containers {
			consumers = append(consumers, imagegc.Consumer{Name: "container layers", Bytes: stores.Deref(fs.Bytes)})
		}
		return consumers, errors.Join(err, fsErr)
	}
}

// Manager returns the garbage collector; nil if there are no images.
func (i *NodeImages) Manager() *imagegc.Manager {
	if i == nil {
		return nil
	}
	return i.collector
}

// ForNode returns the images of the node status (rule ns-15): those of the runtime where
// none are collected, and none with an error or a maximum of 0.
func (i *NodeImages) ForNode(rt PodRuntime, most int) func(context.Context) ([]node.Image, error) {
	if most == 0 {
		return func(context.Context) ([]node.Image, error) { return nil, nil }
	}
	if i == nil {
		return func(ctx context.Context) ([]node.Image, error) {
			store, ok := compose.As[runtime.ImageStore](rt.Runtime)
			if !ok {
				return nil, nil
			}
			list, err := store.Images(ctx)
			var out []node.Image
			for _, image := range list {
				out = append(out, node.Image{ID: image.ID, Digests: image.Digests, Tags: image.Tags, Size: int64(image.Size)})
			}
			return out, unlessUnsupported(err)
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

// DeleteUnusedImages deletes unused images under disk pressure.
func (i *NodeImages) DeleteUnusedImages(ctx context.Context) error {
	if i == nil {
		return nil
	}
	_, err := i.collector.DeleteUnused(ctx)
	return err
}

// ImageBytes returns the size of the images of a pod.
func (i *NodeImages) ImageBytes(ctx context.Context, pod *v1.Pod) int64 {
	if i == nil {
		return 0
	}
	return i.collector.PodBytes(ctx, pod)
}

func (i *NodeImages) components() []stores.Component {
	if i == nil {
		return nil
	}
	return []stores.Component{i.collector.Run}
}
