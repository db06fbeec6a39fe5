package apiserver

import (
	"fmt"
	"net/netip"
	"net/url"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/util/proxy"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// services resolves the service of a webhook to one of its endpoints, as kube-apiserver with
// --enable-aggregator-routing does. It reads the objects of the server: informers would have a
// copy of each.
type services struct{ api *apitest.Server }

// ResolveEndpoint implements webhook.ServiceResolver.
func (s services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return proxy.ResolveEndpoint(s, s, namespace, name, port)
}

// List implements corelisters.ServiceLister.
func (s services) List(selector labels.Selector) ([]*v1.Service, error) {
	return s.Services("").List(selector)
}

// Services implements corelisters.ServiceLister.
func (s services) Services(namespace string) corelisters.ServiceNamespaceLister {
	return namespacedServices{s.api, namespace}
}

// GetEndpointSlices implements proxy.EndpointSliceGetter.
func (s services) GetEndpointSlices(namespace, name string) ([]*discoveryv1.EndpointSlice, error) {
	var out []*discoveryv1.EndpointSlice
	for _, o := range s.api.List("endpointslices.discovery.k8s.io") {
		if slice := o.(*discoveryv1.EndpointSlice); slice.Namespace == namespace && slice.Labels[discoveryv1.LabelServiceName] == name {
			out = append(out, slice)
		}
	}
	return out, nil
}

// namespacedServices are the Services of a namespace; "" means all.
type namespacedServices struct {
	api       *apitest.Server
	namespace string
}

// List implements corelisters.ServiceNamespaceLister.
func (s namespacedServices) List(selector labels.Selector) ([]*v1.Service, error) {
	var out []*v1.Service
	for _, o := range s.api.List("services") {
		if one := o.(*v1.Service); (s.namespace == "" || s.namespace == one.Namespace) && selector.Matches(labels.Set(one.Labels)) {
			out = append(out, one)
		}
	}
	return out, nil
}

// Get implements corelisters.ServiceNamespaceLister.
func (s namespacedServices) Get(name string) (*v1.Service, error) {
	return got[*v1.Service](accounts{s.api}, "", "services", s.namespace, name)
}

// addresses assigns the cluster IPs of Services.
type addresses struct {
	api    *apitest.Server
	prefix netip.Prefix
}

// assign sets the cluster IP of a Service that needs one, and keeps that of an update.
func (s *addresses) assign(a *apitest.Attempt) error {
	next, ok := a.Next.(*v1.Service)
	if !ok || a.Subresource != "" || next.Spec.Type == v1.ServiceTypeExternalName {
		return nil
	}
	if old, ok := a.Old.(*v1.Service); ok && next.Spec.ClusterIP == "" {
		next.Spec.ClusterIP, next.Spec.ClusterIPs = old.Spec.ClusterIP, old.Spec.ClusterIPs
	}
	switch {
	case next.Spec.ClusterIP == "" && len(next.Spec.ClusterIPs) > 0:
		next.Spec.ClusterIP = next.Spec.ClusterIPs[0]
	case next.Spec.ClusterIP == "":
		ip, err := s.free()
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		next.Spec.ClusterIP = ip
	case a.Old == nil && next.Spec.ClusterIP != v1.ClusterIPNone && s.used()[next.Spec.ClusterIP]:
		return apierrors.NewInvalid(a.Kind.GroupKind(), next.Name, field.ErrorList{field.Invalid(
			field.NewPath("spec", "clusterIPs").Index(0), next.Spec.ClusterIP,
			fmt.Sprintf("failed to allocate IP %s: provided IP is already allocated", next.Spec.ClusterIP))})
	}
	if next.Spec.ClusterIPs == nil {
		next.Spec.ClusterIPs = []string{next.Spec.ClusterIP}
	}
	if next.Spec.IPFamilies == nil {
		next.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol}
		if s.prefix.Addr().Is6() {
			next.Spec.IPFamilies[0] = v1.IPv6Protocol
		}
	}
	if next.Spec.IPFamilyPolicy == nil {
		next.Spec.IPFamilyPolicy = new(v1.IPFamilyPolicySingleStack)
	}
	return nil
}

// used returns the cluster IPs of all Services.
func (s *addresses) used() map[string]bool {
	used := map[string]bool{}
	for _, o := range s.api.List("services") {
		used[o.(*v1.Service).Spec.ClusterIP] = true
	}
	return used
}

// free returns the first address that no Service has. The first of the prefix is that of the
// Service kubernetes. Two Services that are created at the same time may get the same one.
func (s *addresses) free() (string, error) {
	used := s.used()
	for ip := s.prefix.Masked().Addr().Next().Next(); s.prefix.Contains(ip); ip = ip.Next() {
		if !used[ip.String()] {
			return ip.String(), nil
		}
	}
	return "", fmt.Errorf("failed to allocate a serviceIP: range %v is full", s.prefix)
}
