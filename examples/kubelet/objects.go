package main

import (
	"context"
	"fmt"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/volume/objectdir"
)

// fileObjects are the ConfigMaps and Secrets of --objects, for variables, pull secrets
// and volumes.
type fileObjects struct {
	*objectdir.Dir

	// changed is told of changes, once the volumes are there to hear of them.
	changed atomic.Pointer[func(kind, namespace, name string)]
}

// readObjects returns the objects of --objects; nil without the flag.
func (a *assembly) readObjects() (*fileObjects, error) {
	if a.opts.objects == "" {
		return nil, nil
	}
	o := new(fileObjects)
	dir, err := objectdir.New(objectdir.Config{
		Path: a.opts.objects, Logger: a.logger,
		Changed: func(kind, namespace, name string) {
			if changed := o.changed.Load(); changed != nil {
				(*changed)(kind, namespace, name)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("--objects: %w", err)
	}
	o.Dir = dir
	return o, nil
}

// OnChange sets who is told of changes: what is mounted before has what there was.
func (o *fileObjects) OnChange(changed func(kind, namespace, name string)) {
	if o != nil {
		o.changed.Store(&changed)
	}
}

// Services implements cri.Objects: files have none.
func (*fileObjects) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

// Run reads the files until ctx ends; without the flag there is nothing to do.
func (o *fileObjects) Run(ctx context.Context) error {
	if o == nil {
		return nil
	}
	return o.Dir.Run(ctx)
}

// forRuntime returns what variables refer to; nil without the flag, so that the error
// says that nothing has them.
func (o *fileObjects) forRuntime() cri.Objects {
	if o == nil {
		return nil
	}
	return o
}
