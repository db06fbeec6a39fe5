package apiserver

import (
	"net/netip"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// putInitial stores the objects that kube-apiserver creates when it starts and that tests
// expect: the initial namespaces, and the Service kubernetes with the first address of cidr.
// Service accounts are created by a controller.
func putInitial(api *apitest.Server, cidr netip.Prefix) {
	for _, name := range []string{metav1.NamespaceDefault, v1.NamespaceNodeLease, metav1.NamespacePublic, metav1.NamespaceSystem} {
		api.Put(&v1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelMetadataName: name}, CreationTimestamp: metav1.Now()},
			Spec:       v1.NamespaceSpec{Finalizers: []v1.FinalizerName{v1.FinalizerKubernetes}},
			Status:     v1.NamespaceStatus{Phase: v1.NamespaceActive},
		})
	}
	ip := cidr.Masked().Addr().Next().String()
	api.Put(&v1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: "kubernetes", CreationTimestamp: metav1.Now(),
			Labels: map[string]string{"component": "apiserver", "provider": "kubernetes"},
		},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, SessionAffinity: v1.ServiceAffinityNone,
			Ports: []v1.ServicePort{{Name: "https", Port: 443, Protocol: v1.ProtocolTCP, TargetPort: intstr.FromInt32(6443)}},
		},
	})
}
