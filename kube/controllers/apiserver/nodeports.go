package apiserver

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// The range of node ports is the default one of kube-apiserver's --service-node-port-range. Ports from
// firstDynamicPort on are assigned first, so that Services that name a low port seldom meet an
// assigned one.
const (
	firstNodePort    = 30000
	firstDynamicPort = 30086
	lastNodePort     = 32767
)

// nodePorts assigns the node ports of Services.
type nodePorts struct{ api *apitest.Server }

// assign sets the node ports of a Service that needs some, and keeps those of an update.
func (n *nodePorts) assign(a *apitest.Attempt) error {
	next, ok := a.Next.(*v1.Service)
	if !ok || a.Subresource != "" || !hasNodePorts(next) {
		return nil
	}
	if old, ok := a.Old.(*v1.Service); ok && hasNodePorts(old) {
		keepNodePorts(next, old)
	}
	used := n.used(next.UID)
	own, ofPort := map[int32]bool{}, map[int32]int32{} // the protocols of a port share its node port
	assign := func(i int) error {
		p := &next.Spec.Ports[i]
		if !own[p.NodePort] {
			if err := take(a, &p.NodePort, used, field.NewPath("spec", "ports").Index(i).Child("nodePort")); err != nil {
				return err
			}
		}
		own[p.NodePort], used[p.NodePort] = true, true
		if ofPort[p.Port] == 0 {
			ofPort[p.Port] = p.NodePort
		}
		return nil
	}
	for i := range next.Spec.Ports {
		if next.Spec.Ports[i].NodePort != 0 {
			if err := assign(i); err != nil {
				return err
			}
		}
	}
	assigns := next.Spec.Type == v1.ServiceTypeNodePort || next.Spec.AllocateLoadBalancerNodePorts == nil || *next.Spec.AllocateLoadBalancerNodePorts
	for i := range next.Spec.Ports {
		if p := &next.Spec.Ports[i]; p.NodePort == 0 && assigns {
			p.NodePort = ofPort[p.Port]
			if err := assign(i); err != nil {
				return err
			}
		}
	}
	if hasHealthCheckPort(next) {
		return take(a, &next.Spec.HealthCheckNodePort, used, field.NewPath("spec", "healthCheckNodePort"))
	}
	return nil
}

func hasNodePorts(s *v1.Service) bool {
	return s.Spec.Type == v1.ServiceTypeNodePort || s.Spec.Type == v1.ServiceTypeLoadBalancer
}

func hasHealthCheckPort(s *v1.Service) bool {
	return s.Spec.Type == v1.ServiceTypeLoadBalancer && s.Spec.ExternalTrafficPolicy == v1.ServiceExternalTrafficPolicyLocal
}

// keepNodePorts copies the node ports of an old version to the same ports of a new one that has none.
func keepNodePorts(next, old *v1.Service) {
	type key struct {
		protocol v1.Protocol
		port     int32
	}
	had, wanted := map[key]int32{}, map[int32]bool{}
	for _, p := range old.Spec.Ports {
		had[key{p.Protocol, p.Port}] = p.NodePort
	}
	for _, p := range next.Spec.Ports {
		wanted[p.NodePort] = true
	}
	for i := range next.Spec.Ports {
		p := &next.Spec.Ports[i]
		if port := had[key{p.Protocol, p.Port}]; p.NodePort == 0 && !wanted[port] {
			p.NodePort = port
		}
	}
	if next.Spec.HealthCheckNodePort == 0 && hasHealthCheckPort(next) && hasHealthCheckPort(old) {
		next.Spec.HealthCheckNodePort = old.Spec.HealthCheckNodePort
	}
}

// take checks a requested port, or sets a free one if it is 0.
func take(a *apitest.Attempt, port *int32, used map[int32]bool, at *field.Path) error {
	var problem string
	switch {
	case *port == 0:
		if *port = free(used); *port == 0 {
			return apierrors.NewInternalError(errors.New("failed to allocate a nodePort: range is full"))
		}
	case *port < firstNodePort || *port > lastNodePort:
		problem = fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", firstNodePort, lastNodePort)
	case used[*port]:
		problem = "provided port is already allocated"
	}
	if problem == "" {
		return nil
	}
	return apierrors.NewInvalid(a.Kind.GroupKind(), a.Next.(*v1.Service).Name, field.ErrorList{field.Invalid(at, *port, problem)})
}

// free returns the first port that is not used; 0 if there is none.
func free(used map[int32]bool) int32 {
	for _, band := range [][2]int32{{firstDynamicPort, lastNodePort}, {firstNodePort, firstDynamicPort - 1}} {
		for port := band[0]; port <= band[1]; port++ {
			if !used[port] {
				return port
			}
		}
	}
	return 0
}

// used returns the node ports of all other Services.
func (n *nodePorts) used(self types.UID) map[int32]bool {
	used := map[int32]bool{}
	for _, o := range n.api.List("services") {
		s := o.(*v1.Service)
		if s.UID == self {
			continue
		}
		for _, p := range s.Spec.Ports {
			used[p.NodePort] = true
		}
		used[s.Spec.HealthCheckNodePort] = true
	}
	delete(used, 0)
	return used
}
