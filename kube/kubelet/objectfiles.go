package kubelet

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/volume/objectdir"
)

// objectFiles are the ConfigMaps and Secrets of Config.ObjectsDir.
type objectFiles struct{ *objectdir.Dir }

// Services implements cri.Objects; files have none.
func (objectFiles) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

func newObjectFiles(b base) (*objectFiles, error) {
	if b.cfg.ObjectsDir == "" || clustered(b.cfg) {
		return nil, nil
	}
	dir, err := objectdir.New(objectdir.Config{
		Dir: b.cfg.ObjectsDir, Logger: b.logger,
		Changed: func(kind, namespace, name string) { b.queues.objects.add(objectName{kind, namespace, name}) },
	})
	if err != nil {
		return nil, fmt.Errorf("Config.ObjectsDir: %w", err)
	}
	return &objectFiles{dir}, nil
}

// objectsOf returns the objects that environment variables refer to: those of the
// cluster, else the files; nil if there are neither.
func objectsOf(c *cluster, files *objectFiles) cri.Objects {
	switch {
	case c != nil:
		return c.objects
	case files != nil:
		return files
	}
	return nil
}
