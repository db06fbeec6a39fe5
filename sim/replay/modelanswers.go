package replay

import (
	"cmp"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// answer answers a read. c is the nearest recorded one; nil if there is none. The caller holds mu.
func (m *model) answer(c *call, method string, request []byte, f fields, answer proto.Message) error {
	switch a := answer.(type) {
	case *runtimeapi.ListContainersResponse:
		var req runtimeapi.ListContainersRequest
		if err := decode(request, &req); err != nil {
			return err
		}
		for _, t := range m.sorted() {
			if t.name != "" && matches(req.Filter, t.listing()) {
				a.Containers = append(a.Containers, t.listing())
			}
		}
	case *runtimeapi.ListPodSandboxResponse:
		var req runtimeapi.ListPodSandboxRequest
		if err := decode(request, &req); err != nil {
			return err
		}
		for _, t := range m.sorted() {
			if t.name != "" {
				continue
			}
			s := t.sandboxListing()
			if f := req.Filter; f == nil || (f.Id == "" || f.Id == t.id) && selects(f.LabelSelector, s.Labels) && (f.State == nil || f.State.State == s.State) {
				a.Items = append(a.Items, s)
			}
		}
	case *runtimeapi.ContainerStatusResponse:
		t := m.items[f.ContainerID]
		if t == nil || t.name == "" {
			return status.Errorf(codes.NotFound, "replay: container %q not found", f.ContainerID)
		}
		a.Status = t.containerStatus()
	case *runtimeapi.PodSandboxStatusResponse:
		t := m.items[f.PodSandboxID]
		if t == nil || t.name != "" {
			return status.Errorf(codes.NotFound, "replay: sandbox %q not found", f.PodSandboxID)
		}
		a.Status = t.sandboxStatus()
	case *runtimeapi.ImageStatusResponse:
		if f.Image == nil {
			return errNotRecorded(method)
		}
		return m.image(c, f.Image.Image, a)
	case *runtimeapi.VersionResponse:
		if c != nil && decode(c.answer, a) == nil && a.RuntimeVersion != "" {
			return nil
		}
		a.Version, a.RuntimeName, a.RuntimeVersion, a.RuntimeApiVersion = "0.1.0", m.w.runtimeName(), "1.0.0", "v1"
	case *runtimeapi.StatusResponse:
		if c != nil && decode(c.answer, a) == nil && a.Status != nil {
			return nil
		}
		a.Status = &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{{Type: "RuntimeReady", Status: true}, {Type: "NetworkReady", Status: true}}}
	case *runtimeapi.RuntimeConfigResponse:
		if c == nil {
			return status.Error(codes.Unimplemented, "replay: no RuntimeConfig was recorded")
		}
		return decode(c.answer, a)
	default:
		if c != nil {
			return decode(c.answer, a)
		}
	}
	return nil
}

// image answers ImageStatus. An image is present unless the recording or the replayed agent's calls differ.
func (m *model) image(c *call, name string, a *runtimeapi.ImageStatusResponse) error {
	pulled, changed := m.images[name]
	switch {
	case changed && !pulled, !changed && m.pulledLater(name):
		return nil
	case !changed && c != nil:
		return decode(c.answer, a)
	}
	for _, other := range m.w.x.reads["ImageStatus"+name] {
		if other.err == nil && !other.hangs && decode(other.answer, a) == nil && a.Image.GetId() != "" {
			return nil
		}
	}
	*a = runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: syntheticID(name), RepoTags: []string{name}, Size: 1}}
	return nil
}

// pulledLater reports whether the first recorded read of an image found none, so that it
// is absent until the replayed agent pulls it.
func (m *model) pulledLater(name string) bool {
	for _, c := range m.w.x.reads["ImageStatus"+name] {
		var first runtimeapi.ImageStatusResponse
		if c.err == nil && !c.hangs && decode(c.answer, &first) == nil {
			return first.Image.GetId() == ""
		}
	}
	return false
}

func (t *item) listing() *runtimeapi.Container {
	c := proto.CloneOf(t.container)
	switch t.status.State {
	case runtime.ContainerCreated:
		c.State = runtimeapi.ContainerState_CONTAINER_CREATED
	case runtime.ContainerRunning:
		c.State = runtimeapi.ContainerState_CONTAINER_RUNNING
	default:
		c.State = runtimeapi.ContainerState_CONTAINER_EXITED
	}
	return c
}

func (t *item) sandboxListing() *runtimeapi.PodSandbox {
	s := proto.CloneOf(t.box)
	s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	if t.ready {
		s.State = runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return s
}

func (t *item) containerStatus() *runtimeapi.ContainerStatus {
	c := t.listing()
	s := &runtimeapi.ContainerStatus{
		Id: c.Id, Metadata: c.Metadata, State: c.State, CreatedAt: c.CreatedAt, Image: c.Image, ImageRef: c.ImageRef, ImageId: c.ImageRef,
		Labels: c.Labels, Annotations: c.Annotations, LogPath: t.logPath,
	}
	if !t.status.StartedAt.IsZero() {
		s.StartedAt = t.status.StartedAt.UnixNano()
	}
	if t.status.State == runtime.ContainerExited {
		s.FinishedAt, s.ExitCode, s.Reason, s.Message = t.status.FinishedAt.UnixNano(), t.status.ExitCode, t.status.Reason, t.message
	}
	return s
}

func (t *item) sandboxStatus() *runtimeapi.PodSandboxStatus {
	s := t.sandboxListing()
	out := &runtimeapi.PodSandboxStatus{
		Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: cmp.Or(s.CreatedAt, 1), Labels: s.Labels, Annotations: s.Annotations, RuntimeHandler: s.RuntimeHandler,
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: address(t.id)},
	}
	if t.network != nil {
		out.Linux = &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: t.network}}
	}
	return out
}

// address returns the address of a sandbox. Addresses are not compared.
func address(id string) string {
	n := 0
	for _, b := range []byte(digestOf(id))[:4] {
		n = n*7 + int(b)
	}
	return fmt.Sprintf("10.88.%d.%d", n/250%250, 2+n%250)
}

// emit adds an event of the runtime. The caller holds mu.
func (m *model) emit(t *item, kind runtimeapi.ContainerEventType) {
	if m.eventAdded == nil {
		return
	}
	e := &runtimeapi.ContainerEventResponse{ContainerId: t.id, ContainerEventType: kind, CreatedAt: time.Now().UnixNano()}
	box := t
	if t.name != "" {
		box = m.items[t.sandbox]
	}
	if box != nil && box.box != nil {
		e.PodSandboxStatus = box.sandboxStatus()
		for _, c := range m.sorted() {
			if c.name != "" && c.sandbox == box.id {
				e.ContainersStatuses = append(e.ContainersStatuses, c.containerStatus())
			}
		}
	}
	m.events = append(m.events, e)
	close(m.eventAdded)
	m.eventAdded = make(chan struct{})
}
