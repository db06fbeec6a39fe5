package stores

import (
	"context"
	"fmt"
	"reflect"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/volume/objectdir"
)

// LocalObjects are the objects of a kubelet without an API server: Config.Objects.Source, or those of
// Config.Objects.Dir.
type LocalObjects struct {
	options.Objects
	Run      Component   // nil: the caller of the kubelet runs it
	services cri.Objects // nil: there are none
}

// Services implements cri.Objects; without such a method of the source there are none.
func (o *LocalObjects) Services(ctx context.Context, namespace string) ([]*v1.Service, bool) {
	if o.services == nil {
		return nil, true
	}
	return o.services.Services(ctx, namespace)
}

// HasLocalObjects reports whether static pods may refer to objects, which an API server does not protect.
func HasLocalObjects(c options.Config) bool {
	return c.Objects.Source != nil || c.Objects.Dir != "" && !Clustered(c)
}

func newLocalObjects(b Base) (*LocalObjects, error) {
	if !HasLocalObjects(b.Config) {
		return nil, nil
	}
	if objects := b.Config.Objects.Source; objects != nil {
		if err := compose.Check(objects, reflect.TypeFor[cri.Objects]()); err != nil {
			return nil, fmt.Errorf("Config.Objects.Source: %w", err)
		}
		services, _ := compose.As[cri.Objects](objects)
		return &LocalObjects{Objects: objects, services: services}, nil
	}
	dir, err := objectdir.New(objectdir.Config{
		Dir: b.Config.Objects.Dir, Logger: b.Logger,
		Changed: func(kind, namespace, name string) { b.Queues.Objects.Add(ObjectName{kind, namespace, name}) },
	})
	if err != nil {
		return nil, fmt.Errorf("Config.Objects.Dir: %w", err)
	}
	return &LocalObjects{Objects: dir, Run: dir.Run}, nil
}

// ObjectsOf returns the objects that environment variables refer to: those of the
// cluster, else the local ones; nil if there are neither.
func ObjectsOf(c *Cluster, local *LocalObjects) cri.Objects {
	switch {
	case c != nil:
		return c.Objects
	case local != nil:
		return local
	}
	return nil
}
