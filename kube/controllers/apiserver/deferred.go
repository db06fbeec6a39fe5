package apiserver

import (
	"context"
	"sync/atomic"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// A deferred webhook plugin is made when the first configuration is observed: it compiles
// environments of CEL, which takes most of the processor time of Start.
type deferred[P admission.Interface] struct {
	make   func() (P, error)
	plugin atomic.Pointer[P]
	failed atomic.Pointer[error] // of make: all writes are rejected
}

// observe makes the plugin when the informer observes a configuration. The result reports whether
// those that exist have been observed.
func (d *deferred[P]) observe(configurations cache.SharedIndexInformer) (cache.DoneChecker, error) {
	handle, err := configurations.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
		if d.plugin.Load() != nil {
			return
		}
		p, err := d.make()
		if err != nil { // it has no input that differs between servers
			klog.ErrorS(err, "Failed to make the plugin of webhooks; writes are rejected")
			d.failed.Store(&err)
			return
		}
		d.plugin.Store(&p)
	}})
	if err != nil {
		return nil, err
	}
	return handle.HasSyncedChecker(), nil
}

// Handles reports whether the plugin is called: not before it is made.
func (d *deferred[P]) Handles(operation admission.Operation) bool {
	if p := d.plugin.Load(); p != nil {
		return (*p).Handles(operation)
	}
	return d.failed.Load() != nil
}

// made returns the plugin, of which Handles has returned true.
func (d *deferred[P]) made() (p P, err error) {
	if made := d.plugin.Load(); made != nil {
		return *made, nil
	}
	return p, *d.failed.Load()
}

// deferredMutation and deferredValidation are plugins of the two steps of admission.
type deferredMutation[P admission.MutationInterface] struct{ deferred[P] }

func (d *deferredMutation[P]) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p, err := d.made()
	if err != nil {
		return err
	}
	return p.Admit(ctx, a, o)
}

type deferredValidation[P admission.ValidationInterface] struct{ deferred[P] }

func (d *deferredValidation[P]) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	p, err := d.made()
	if err != nil {
		return err
	}
	return p.Validate(ctx, a, o)
}
