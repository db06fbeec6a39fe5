package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// thisNode is what pods are held against: the name, the system, and what there
// is to give out, which is the machine without what is reserved.
func thisNode(name string, maxPods int32, allocatable v1.ResourceList) admission.Node {
	node := admission.Node{Name: name, OS: goruntime.GOOS, Labels: map[string]string{
		v1.LabelHostname: name, v1.LabelOSStable: goruntime.GOOS, v1.LabelArchStable: goruntime.GOARCH,
	}}
	quantity := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	node.Allocatable = v1.ResourceList{
		v1.ResourceCPU:  quantity(int64(goruntime.NumCPU())),
		v1.ResourcePods: quantity(int64(maxPods)),
		// Nobody measures what pods have on disk, nor, where the machine does
		// not tell, its memory: there they get what they ask for.
		v1.ResourceEphemeralStorage: quantity(math.MaxInt64),
		v1.ResourceMemory:           quantity(math.MaxInt64),
	}
	for name, q := range allocatable {
		if name != v1.ResourceEphemeralStorage {
			node.Allocatable[name] = q
		}
	}
	return node
}

// fits says whether a pod may run on the node, and a resize be granted there. A pod
// that is leaving is wanted no more, and has not stopped yet.
func fits(this func() admission.Node, leaving func(types.UID) bool) func(context.Context, allocation.Request) *runtime.Rejection {
	return func(_ context.Context, req allocation.Request) *runtime.Rejection {
		node := this()
		if req.Operation == allocation.Resize {
			return first(admission.Fit(req.Pod, req.Others, node))
		}
		failures := admission.Check(req.Pod, req.Others, node)
		rejection := first(failures)
		onlyRoom := !slices.ContainsFunc(failures, func(f admission.Failure) bool { return f.Lack == nil })
		if rejection == nil || !onlyRoom {
			return rejection
		}
		if staying, going := divide(req.Others, leaving); len(going) > 0 && len(admission.Check(req.Pod, staying, node)) == 0 {
			// The scheduler gives away at once what they had (sl-19, sl-23): the
			// pod waits for them, where a kubelet runs it beside them.
			rejection.Preempt = uids(going)
			return rejection
		}
		if !admission.Critical(req.Pod) {
			return rejection
		}
		// Others give way to a critical pod (adm-10); not those of which only a
		// record is there so far: they may be critical as well.
		met := slices.DeleteFunc(slices.Clone(req.Others), func(p *v1.Pod) bool { return len(p.Annotations) == 0 })
		victims, err := admission.Victims(req.Pod, met, failures)
		if err != nil {
			return &runtime.Rejection{
				Reason:  "UnexpectedAdmissionError",
				Message: fmt.Sprintf("Unexpected error while attempting to recover from admission failure: %v", err), // adm-12
			}
		}
		rejection.Preempt = uids(victims)
		return rejection
	}
}

// divide tells those who stay from those who are leaving.
func divide(pods []*v1.Pod, leaving func(types.UID) bool) (staying, going []*v1.Pod) {
	for _, pod := range pods {
		if leaving(pod.UID) {
			going = append(going, pod)
		} else {
			staying = append(staying, pod)
		}
	}
	return staying, going
}

func uids(pods []*v1.Pod) (uids []types.UID) {
	for _, pod := range pods {
		uids = append(uids, pod.UID)
	}
	return uids
}

// first returns the failure that is reported (adm-9).
func first(failures []admission.Failure) *runtime.Rejection {
	for _, f := range failures {
		return &f.Rejection
	}
	return nil
}

// admitters are asked, in this order, whether a pod may run here. The managers come
// last: what they give to a pod that is refused after them would have to be taken back.
func (a *assembly) admitters(g ground) podworker.Admitters {
	return podworker.Admitters{
		podworker.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection { return admission.Empty(pod) }),
		podworker.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection { return admission.ResourceClaims(pod) }),
		g.evictions,
		g.rt.sysctls,
		podworker.AdmitFunc(func(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
			if podconfig.AdmitGroups(pod, false) == nil {
				return nil // it does not ask for it: the runtime need not be asked
			}
			has, err := g.rt.Features(ctx)
			if err != nil {
				return &runtime.Rejection{Reason: "RuntimeUnknown", Message: fmt.Sprintf("what the runtime supports is not known: %v", err), Deferred: true}
			}
			return podconfig.AdmitGroups(pod, has.SupplementalGroupsPolicy)
		}),
		g.granted,
		podworker.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection {
			return podconfig.AdmitAppArmor(pod, cannotAppArmor())
		}),
		g.leaving,
		g.rt.managers.admit(a.pods),
		podworker.AdmitFunc(func(_ context.Context, pod *v1.Pod) *runtime.Rejection {
			a.reportIgnored(pod)
			return nil
		}),
	}
}

// reportIgnored emits an event about the fields of an admitted pod that have no effect.
func (a *assembly) reportIgnored(pod *v1.Pod) {
	fields := admission.Ignored(pod)
	if len(fields) == 0 {
		return
	}
	const shown = 10
	if more := len(fields) - shown; more > 0 {
		fields = append(fields[:shown:shown], fmt.Sprintf("and %d more", more))
	}
	a.record(runtime.Event{
		Object: runtime.PodRef(pod), Type: v1.EventTypeWarning, Reason: admission.IgnoredFieldsReason, Message: strings.Join(fields, "; "),
	})
}

// cannotAppArmor returns why this machine's kernel enforces no AppArmor profiles,
// or nil if it does.
func cannotAppArmor() error {
	enabled, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	if err != nil || !strings.HasPrefix(string(enabled), "Y") {
		return errors.New("AppArmor is not enabled on the host")
	}
	return nil
}

// checkDNS returns what is wrong with the machine's resolv.conf, if anything: pods
// run all the same (dn-9).
func checkDNS(dns cri.DNS) error {
	return dns.Check(cri.ReadResolvConf(dns))
}
