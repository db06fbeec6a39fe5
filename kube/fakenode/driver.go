package fakenode

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
)

// A Driver is a simulated DRA driver (dynamic resource allocation) of a node. A node prepares
// the ResourceClaims of its pods as a kubelet does: a claim must be allocated to a device of
// the drivers of the node, and reserved for the pod, before the pod starts. It is unprepared
// after the last pod with the claim has terminated.
type Driver struct {
	// Name is the name of the driver, a DNS subdomain, unique on the node.
	Name string

	// Devices are the devices of the node. If not empty, they are published in
	// ResourceSlices, in a pool with the name of the node, so that a kube-scheduler
	// allocates them.
	Devices []resourceapi.Device

	// Called is called before a claim is prepared (method NodePrepareResources) or
	// unprepared (NodeUnprepareResources). An error is the driver's response; the call is
	// retried. It may block until ctx is done, and must be safe for concurrent use. May be
	// nil.
	Called func(ctx context.Context, method string, claim dra.ClaimRef) error
}

// checkDrivers returns an error that names an invalid driver.
func checkDrivers(drivers []Driver) error {
	for i, d := range drivers {
		switch {
		case d.Name == "":
			return fmt.Errorf("Drivers[%d].Name is empty", i)
		case slices.ContainsFunc(drivers[:i], func(other Driver) bool { return other.Name == d.Name }):
			return fmt.Errorf("duplicate driver %q", d.Name)
		}
	}
	return nil
}

// newClaims constructs the manager of resource claims, unless the node has no drivers.
func (a *agent) newClaims() (err error) {
	if len(a.spec.Drivers) == 0 {
		return nil
	}
	a.claims, err = dra.New(dra.Config{
		Claims: client.ResourceClaims{Client: a.of.conn.API, NodeName: a.spec.Name}, Plugins: plugins(a.spec.Drivers), Store: &a.host.checkpoint, Logger: a.of.cfg.Logger,
	})
	return err
}

// plugins implements dra.Plugins.
type plugins []Driver

func (p plugins) find(name string) *Driver {
	i := slices.IndexFunc(p, func(d Driver) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &p[i]
}

// Registered implements dra.Plugins.
func (p plugins) Registered(driver string) bool { return p.find(driver) != nil }

// Prepare implements dra.Plugins. The devices have no CDI names, since nothing is executed.
func (p plugins) Prepare(ctx context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]dra.Prepared, error) {
	results := map[types.UID]dra.Prepared{}
	return results, p.call(ctx, driver, "NodePrepareResources", claims, func(uid types.UID, err error) { results[uid] = dra.Prepared{Err: err} })
}

// Unprepare implements dra.Plugins.
func (p plugins) Unprepare(ctx context.Context, driver string, claims []dra.ClaimRef) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	return results, p.call(ctx, driver, "NodeUnprepareResources", claims, func(uid types.UID, err error) { results[uid] = err })
}

func (p plugins) call(ctx context.Context, driver, method string, claims []dra.ClaimRef, result func(uid types.UID, err error)) error {
	d := p.find(driver)
	if d == nil {
		return dra.ErrNotRegistered
	}
	for _, claim := range claims {
		var err error
		if d.Called != nil {
			err = d.Called(ctx, method, claim)
		}
		result(claim.UID, err)
	}
	return nil
}

// prepareClaims prepares the claims of a pod before its sandbox is created.
func (a *agent) prepareClaims(ctx context.Context, req runtime.SyncRequest) error {
	if a.claims == nil || req.Status != nil && slices.ContainsFunc(req.Status.Sandboxes, func(s runtime.SandboxStatus) bool { return s.State == runtime.SandboxReady }) {
		return nil
	}
	err := a.claims.PrepareResources(ctx, req.Pod)
	if err != nil && ctx.Err() == nil {
		a.record(runtime.Event{
			Object: runtime.PodRef(req.Pod), Type: v1.EventTypeWarning, Reason: "FailedPrepareDynamicResources",
			Message: "Failed to prepare dynamic resources: " + err.Error(),
		})
	}
	return err
}

// publishRetry is the time until ResourceSlices that could not be published are retried.
const publishRetry = time.Second

// publishDevices publishes the ResourceSlices of the node, replacing earlier ones.
func (a *agent) publishDevices(ctx context.Context) error {
	for {
		err := a.publish(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		a.of.cfg.Logger.Warn("Failed to publish ResourceSlices; will retry", "node", a.spec.Name, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(publishRetry):
		}
	}
}

func (a *agent) publish(ctx context.Context) error {
	api := a.of.conn.API.ResourceV1().ResourceSlices()
	for _, slice := range a.spec.slices() {
		err := api.Delete(ctx, slice.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if _, err := api.Create(ctx, slice, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// slices returns the ResourceSlices of the node.
func (n *Node) slices() (all []*resourceapi.ResourceSlice) {
	for _, d := range n.Drivers {
		parts := slices.Collect(slices.Chunk(d.Devices, resourceapi.ResourceSliceMaxDevices))
		for i, devices := range parts {
			all = append(all, &resourceapi.ResourceSlice{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", n.Name, d.Name, i)},
				Spec: resourceapi.ResourceSliceSpec{
					Driver: d.Name, NodeName: &n.Name, Devices: devices,
					Pool: resourceapi.ResourcePool{Name: n.Name, Generation: 1, ResourceSliceCount: int64(len(parts))},
				},
			})
		}
	}
	return all
}
