package stores

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/volume/objectdir"
)

// ObjectFiles are the ConfigMaps and Secrets of Config.ObjectsDir.
type ObjectFiles struct{ *objectdir.Dir }

// Services implements cri.Objects; files have none.
func (ObjectFiles) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

func newObjectFiles(b Base) (*ObjectFiles, error) {
	if b.Config.ObjectsDir == "" || Clustered(b.Config) {
		return nil, nil
	}
	dir, err := objectdir.New(objectdir.Config{
		Dir: b.Config.ObjectsDir, Logger: b.Logger,
		Changed: func(kind, namespace, name string) { b.Queues.Objects.Add(ObjectName{kind, namespace, name}) },
	})
	if err != nil {
		return nil, fmt.Errorf("Config.ObjectsDir: %w", err)
	}
	return &ObjectFiles{dir}, nil
}

// ObjectsOf returns the objects that environment variables refer to: those of the
// cluster, else the files; nil if there are neither.
func ObjectsOf(c *Cluster, files *ObjectFiles) cri.Objects {
	switch {
	case c != nil:
		return c.Objects
	case files != nil:
		return files
	}
	return nil
}
