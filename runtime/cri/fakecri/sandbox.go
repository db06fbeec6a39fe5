package fakecri

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// labelPodUID is the label by which the kubelet lists the objects of a pod.
const labelPodUID = "io.kubernetes.pod.uid"

// A pod is the state shared by the sandboxes of one UID.
type pod struct {
	sandboxes []*sandbox
	starts    map[string]int       // of containers, by name
	tried     map[string]time.Time // time of the first attempt to start containers that fail
}

// failing reports whether the start of a container fails, and stores its first attempt.
func (p *pod) failing(name string, f *fake.Failure) bool {
	if f.For == 0 {
		return true
	}
	first, ok := p.tried[name]
	if !ok {
		if p.tried == nil {
			p.tried = map[string]time.Time{}
		}
		first = time.Now()
		p.tried[name] = first
	}
	return time.Since(first) < f.For
}

// started counts a start of a container.
func (p *pod) started(name string) int {
	if p.starts == nil {
		p.starts = map[string]int{}
	}
	p.starts[name]++
	return p.starts[name]
}

// A sandbox is one that was created and not removed. Runtime.mu guards it.
type sandbox struct {
	id      string
	name    string // by which it is reserved
	config  *runtimeapi.PodSandboxConfig
	handler string
	ip      string // empty: the host's, or there is none any more
	created int64
	ready   bool
	pod     *pod

	containers []*container // oldest first

	// resources and overhead are from the last update, or nil.
	resources, overhead *runtimeapi.LinuxContainerResources

	cpuUsed uint64 // core-nanoseconds of its containers that have ended

	item *runtimeapi.PodSandbox // as lists show it; replaced, never changed
}

func (s *sandbox) uid() string { return s.config.GetMetadata().GetUid() }

func (s *sandbox) hostNetwork() bool {
	return s.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
}

func (s *sandbox) state() runtimeapi.PodSandboxState {
	if s.ready {
		return runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return runtimeapi.PodSandboxState_SANDBOX_NOTREADY
}

// RunPodSandbox creates a sandbox, which is ready immediately and has an address in 10.0.0.0/8,
// unless it uses the host network.
func (r *Runtime) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, runtimeHandler string) (string, error) {
	return call(ctx, r, fake.Call{Method: "RunPodSandbox", Pod: types.UID(config.GetMetadata().GetUid())}, func(ctx context.Context) (string, error) {
		if config.GetMetadata() == nil {
			return "", refused("run sandbox: its config has no metadata")
		}
		config = proto.CloneOf(config)
		if err := r.begin(ctx); err != nil {
			return "", err
		}
		defer r.unlock()
		s, err := r.createSandboxLocked(config, runtimeHandler)
		if err != nil {
			return "", err
		}
		return s.id, nil
	})
}

// createSandboxLocked creates a sandbox, which keeps the config.
func (r *Runtime) createSandboxLocked(config *runtimeapi.PodSandboxConfig, handler string) (*sandbox, error) {
	name := sandboxName(config.GetMetadata())
	if by, taken := r.names[name]; taken {
		return nil, reservedFor("sandbox", name, by)
	}
	if handler != "" && handler != defaultHandler && !slices.Contains(r.cfg.Handlers, handler) {
		return nil, refused("run sandbox %s: there is no runtime handler %q", name, handler)
	}
	s := &sandbox{id: r.newIDLocked(), name: name, config: config, handler: handler, created: now(), ready: true}
	if !s.hostNetwork() {
		s.ip = r.newIPLocked()
	}
	r.addSandboxLocked(s)
	return s, nil
}

func (r *Runtime) addSandboxLocked(s *sandbox) {
	r.names[s.name] = s.id
	r.enlistLocked(s)
	r.sandboxChangedLocked(s, Absent, Ready)
	r.publishLocked(s, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT, s.id)
	r.publishLocked(s, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT, s.id)
}

// enlistLocked adds a sandbox to the indexes.
func (r *Runtime) enlistLocked(s *sandbox) {
	s.pod = r.pods[s.uid()]
	if s.pod == nil {
		s.pod = new(pod)
		r.pods[s.uid()] = s.pod
	}
	s.pod.sandboxes = append(s.pod.sandboxes, s)
	if s.config.GetLabels()[labelPodUID] != s.uid() {
		r.mislabelled++
	}
	r.sandboxes.add(s.id, s)
	if s.ip != "" {
		r.byIP[s.ip] = s
	}
	r.showSandboxLocked(s)
}

func (r *Runtime) sandboxChangedLocked(s *sandbox, from, to State) {
	r.changedLocked(Change{Pod: s.uid(), ID: s.id, Attempt: s.config.GetMetadata().GetAttempt(), From: from, To: to})
}

// sandboxName returns the name that containerd reserves for a sandbox.
func sandboxName(m *runtimeapi.PodSandboxMetadata) string {
	return strings.Join([]string{m.GetName(), m.GetNamespace(), m.GetUid(), strconv.FormatUint(uint64(m.GetAttempt()), 10)}, "_")
}

// newIPLocked returns an unused address that was not assigned to any of the last 16 million
// sandboxes. It skips those that look like a network or broadcast address.
func (r *Runtime) newIPLocked() string {
	for {
		r.lastIP = (r.lastIP + 1) & 0xffffff
		n := r.lastIP
		if last := n & 0xff; last == 0 || last == 0xff {
			continue
		}
		ip := netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
		if r.byIP[ip] == nil {
			return ip
		}
	}
}

// StopPodSandbox makes the sandbox not ready, and kills its containers. A sandbox that is stopped
// or unknown is not an error.
func (r *Runtime) StopPodSandbox(ctx context.Context, podSandboxID string) error {
	return actLocked(ctx, r, r.ofSandbox("StopPodSandbox", podSandboxID), func() error {
		s, err := r.sandboxes.find(podSandboxID)
		if err != nil {
			return idempotent("sandbox", podSandboxID, err)
		}
		r.stopSandboxLocked(s)
		return nil
	})
}

func (r *Runtime) stopSandboxLocked(s *sandbox) {
	for _, c := range s.containers {
		r.killLocked(c)
	}
	delete(r.byIP, s.ip)
	s.ip = ""
	r.fellLocked(s)
}

// fellLocked makes a sandbox not ready.
func (r *Runtime) fellLocked(s *sandbox) {
	if !s.ready {
		return
	}
	s.ready = false
	r.showSandboxLocked(s)
	r.sandboxChangedLocked(s, Ready, NotReady)
	r.publishLocked(s, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT, s.id)
}

// RemovePodSandbox stops the sandbox and removes it and its containers. An unknown ID is not an
// error. A sandbox with a container that is being started is stopped but not removed.
func (r *Runtime) RemovePodSandbox(ctx context.Context, podSandboxID string) error {
	return actLocked(ctx, r, r.ofSandbox("RemovePodSandbox", podSandboxID), func() error {
		s, err := r.sandboxes.find(podSandboxID)
		if err != nil {
			return idempotent("sandbox", podSandboxID, err)
		}
		return r.removeSandboxLocked(s)
	})
}

// removeSandboxLocked removes a sandbox with its containers, which are stopped.
func (r *Runtime) removeSandboxLocked(s *sandbox) error {
	r.stopSandboxLocked(s)
	for _, c := range slices.Clone(s.containers) {
		if err := r.removeLocked(c); err != nil {
			return err
		}
	}
	r.dropSandboxLocked(s)
	return nil
}

func (r *Runtime) dropSandboxLocked(s *sandbox) {
	r.sandboxes.remove(s.id)
	delete(r.names, s.name)
	if s.config.GetLabels()[labelPodUID] != s.uid() {
		r.mislabelled--
	}
	s.pod.sandboxes = slices.DeleteFunc(s.pod.sandboxes, func(o *sandbox) bool { return o == s })
	if len(s.pod.sandboxes) == 0 {
		delete(r.pods, s.uid())
	}
	note(&r.past, &r.past.sandboxes, s.id, s.item)
	r.sandboxChangedLocked(s, NotReady, Absent)
	r.publishLocked(s, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT, s.id)
}

// showSandboxLocked updates the sandbox in lists.
func (r *Runtime) showSandboxLocked(s *sandbox) {
	was := s.item
	s.item = &runtimeapi.PodSandbox{
		Id: s.id, Metadata: s.config.Metadata, State: s.state(), CreatedAt: s.created,
		Labels: s.config.Labels, Annotations: s.config.Annotations, RuntimeHandler: s.handler,
	}
	note(&r.past, &r.past.sandboxes, s.id, was)
}
