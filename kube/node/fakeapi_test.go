package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var (
	nodes  = schema.GroupResource{Resource: "nodes"}
	leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

// A fakeAPI has one node and one lease. If fail is not nil, it is called before each
// call, with the call's name and the time since the API's start.
type fakeAPI struct {
	began time.Time
	fail  func(call string) error

	mu    sync.Mutex // guards the fields below
	node  *v1.Node
	lease *coordinationv1.Lease
	calls []string
	rv    int
	uid   int
}

func newAPI() *fakeAPI { return &fakeAPI{began: time.Now()} }

func (f *fakeAPI) called(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	f.mu.Lock()
	f.calls = append(f.calls, fmt.Sprintf("%s %s", time.Since(f.began).Round(100*time.Millisecond), call))
	f.mu.Unlock()
	if f.fail != nil {
		return f.fail(call)
	}
	return nil
}

// took returns the calls since it was last called.
func (f *fakeAPI) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

func (f *fakeAPI) object() *v1.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.node.DeepCopy()
}

func (f *fakeAPI) change(change func(*v1.Node)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.node)
	f.touch(&f.node.ObjectMeta)
}

func (f *fakeAPI) held() *coordinationv1.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lease.DeepCopy()
}

func (f *fakeAPI) touch(m *metav1.ObjectMeta) {
	f.rv++
	m.ResourceVersion = fmt.Sprint(f.rv)
	if m.UID == "" {
		f.uid++
		m.UID = types.UID(fmt.Sprintf("uid-%d", f.uid))
	}
}

type fakeNodes struct{ *fakeAPI }

func (f fakeNodes) Get(_ context.Context, name string, opts metav1.GetOptions) (*v1.Node, error) {
	if err := f.called("get node rv=%q", opts.ResourceVersion); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.node == nil {
		return nil, apierrors.NewNotFound(nodes, name)
	}
	return f.node.DeepCopy(), nil
}

func (f fakeNodes) Create(_ context.Context, node *v1.Node, _ metav1.CreateOptions) (*v1.Node, error) {
	if err := f.called("create node"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.node != nil {
		return nil, apierrors.NewAlreadyExists(nodes, node.Name)
	}
	f.node = node.DeepCopy()
	f.touch(&f.node.ObjectMeta)
	return f.node.DeepCopy(), nil
}

func (f fakeNodes) Patch(_ context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions, sub ...string) (*v1.Node, error) {
	if err := f.called("patch node %v", sub); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.node == nil {
		return nil, apierrors.NewNotFound(nodes, name)
	}
	before, err := json.Marshal(f.node)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, v1.Node{})
	if err != nil {
		return nil, err
	}
	var node v1.Node
	if err := json.Unmarshal(after, &node); err != nil {
		return nil, err
	}
	f.touch(&node.ObjectMeta)
	f.node = &node
	return f.node.DeepCopy(), nil
}

type fakeLeases struct{ *fakeAPI }

func (f fakeLeases) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := f.called("get lease"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lease == nil {
		return nil, apierrors.NewNotFound(leases, name)
	}
	return f.lease.DeepCopy(), nil
}

func (f fakeLeases) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := f.called("create lease"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lease != nil {
		return nil, apierrors.NewAlreadyExists(leases, lease.Name)
	}
	f.lease = lease.DeepCopy()
	f.touch(&f.lease.ObjectMeta)
	return f.lease.DeepCopy(), nil
}

func (f fakeLeases) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := f.called("update lease"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.lease == nil:
		return nil, apierrors.NewNotFound(leases, lease.Name)
	case f.lease.ResourceVersion != lease.ResourceVersion:
		return nil, apierrors.NewConflict(leases, lease.Name, fmt.Errorf("the object has been modified"))
	}
	f.lease = lease.DeepCopy()
	f.touch(&f.lease.ObjectMeta)
	return f.lease.DeepCopy(), nil
}
