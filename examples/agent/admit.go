package main

import (
	"context"
	goruntime "runtime"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// thisNode is what pods' selectors and affinities are held against. It gives out
// as much as there is: what pods ask for is not added up.
func thisNode(name string) admission.Node {
	return admission.Node{Name: name, OS: goruntime.GOOS, Labels: map[string]string{
		v1.LabelHostname: name, v1.LabelOSStable: goruntime.GOOS, v1.LabelArchStable: goruntime.GOARCH,
	}}
}

// fits says whether a pod may run on node, and a resize be granted there.
func fits(node admission.Node) func(context.Context, allocation.Request) *allocation.Refusal {
	return func(_ context.Context, req allocation.Request) *allocation.Refusal {
		check := admission.Check
		if req.Operation == allocation.Resize {
			check = admission.Fit
		}
		if refusals := check(req.Pod, req.Others, node); len(refusals) > 0 {
			return &allocation.Refusal{Reason: refusals[0].Reason, Message: refusals[0].Message} // the first counts
		}
		return nil
	}
}

// admitters are asked, in this order, whether a pod may run here.
func admitters(sysctls *podconfig.Sysctls, granted *allocation.Manager) podworker.Admitters {
	return podworker.Admitters{
		podworker.AdmitFunc(func(_ context.Context, pod *v1.Pod) *podworker.Refusal {
			if r := sysctls.Admit(pod); r != nil {
				return &podworker.Refusal{Reason: r.Reason, Message: r.Message}
			}
			return nil
		}),
		podworker.AdmitFunc(func(ctx context.Context, pod *v1.Pod) *podworker.Refusal {
			if r := granted.Admit(ctx, pod); r != nil {
				return &podworker.Refusal{Reason: r.Reason, Message: r.Message}
			}
			return nil
		}),
	}
}
