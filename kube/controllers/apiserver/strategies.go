package apiserver

import (
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/coordination/leasecandidate"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
)

// newStrategies returns the strategies by which kube-apiserver prepares and validates the
// objects of its own kinds, by resource, group and subresource. Those of
// CustomResourceDefinitions, which have other types, and of the alpha kinds are not among them.
// The imports of the package register the types of groups that pkg/printers does not.
func newStrategies(clients kubernetes.Interface) map[string]rest.RESTUpdateStrategy {
	namespaces := clients.CoreV1().Namespaces()
	claims, groups := resourceclaim.NewStrategy(namespaces, allowed{}), podgroup.NewStrategy()
	policies := validatingadmissionpolicy.NewStrategy(nil, nil)
	return map[string]rest.RESTUpdateStrategy{
		"mutatingwebhookconfigurations.admissionregistration.k8s.io":     mutatingwebhookconfiguration.Strategy,
		"validatingwebhookconfigurations.admissionregistration.k8s.io":   validatingwebhookconfiguration.Strategy,
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": validatingadmissionpolicybinding.NewStrategy(nil, nil, nil),
		"controllerrevisions.apps":                                       controllerrevision.Strategy,
		"daemonsets.apps":                                                daemonset.Strategy,
		"daemonsets.apps/status":                                         daemonset.StatusStrategy,
		"deployments.apps":                                               deployment.Strategy,
		"deployments.apps/status":                                        deployment.StatusStrategy,
		"replicasets.apps":                                               replicaset.Strategy,
		"replicasets.apps/status":                                        replicaset.StatusStrategy,
		"statefulsets.apps":                                              statefulset.Strategy,
		"statefulsets.apps/status":                                       statefulset.StatusStrategy,
		"horizontalpodautoscalers.autoscaling":                           horizontalpodautoscaler.Strategy,
		"horizontalpodautoscalers.autoscaling/status":                    horizontalpodautoscaler.StatusStrategy,
		"cronjobs.batch":                                                 cronjob.Strategy,
		"cronjobs.batch/status":                                          cronjob.StatusStrategy,
		"jobs.batch":                                                     job.Strategy,
		"jobs.batch/status":                                              job.StatusStrategy,
		"certificatesigningrequests.certificates.k8s.io":                 certificates.Strategy,
		"certificatesigningrequests.certificates.k8s.io/status":          certificates.StatusStrategy,
		"certificatesigningrequests.certificates.k8s.io/approval":        certificates.ApprovalStrategy,
		"clustertrustbundles.certificates.k8s.io":                        clustertrustbundle.Strategy,
		"leases.coordination.k8s.io":                                     lease.Strategy,
		"leasecandidates.coordination.k8s.io":                            leasecandidate.Strategy,
		"configmaps":                                                     configmap.Strategy,
		"endpoints":                                                      endpoint.Strategy,
		"events":                                                         event.Strategy,
		"limitranges":                                                    limitrange.Strategy,
		"namespaces":                                                     namespace.Strategy,
		"namespaces/status":                                              namespace.StatusStrategy,
		"namespaces/finalize":                                            namespace.FinalizeStrategy,
		"nodes":                                                          node.Strategy,
		"nodes/status":                                                   node.StatusStrategy,
		"persistentvolumes":                                              persistentvolume.Strategy,
		"persistentvolumes/status":                                       persistentvolume.StatusStrategy,
		"persistentvolumeclaims":                                         persistentvolumeclaim.Strategy,
		"persistentvolumeclaims/status":                                  persistentvolumeclaim.StatusStrategy,
		"pods":                                                           pod.Strategy,
		"pods/status":                                                    pod.StatusStrategy,
		"pods/ephemeralcontainers":                                       pod.EphemeralContainersStrategy,
		"pods/resize":                                                    pod.ResizeStrategy,
		"podtemplates":                                                   podtemplate.Strategy,
		"replicationcontrollers":                                         replicationcontroller.Strategy,
		"replicationcontrollers/status":                                  replicationcontroller.StatusStrategy,
		"resourcequotas":                                                 resourcequota.Strategy,
		"resourcequotas/status":                                          resourcequota.StatusStrategy,
		"secrets":                                                        secret.Strategy,
		"services":                                                       service.Strategy,
		"services/status":                                                service.StatusStrategy,
		"serviceaccounts":                                                serviceaccount.Strategy,
		"endpointslices.discovery.k8s.io":                                endpointslice.Strategy,
		"events.events.k8s.io":                                           event.Strategy,
		"flowschemas.flowcontrol.apiserver.k8s.io":                       flowschema.Strategy,
		"flowschemas.flowcontrol.apiserver.k8s.io/status":                flowschema.StatusStrategy,
		"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io":        prioritylevelconfiguration.Strategy,
		"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io/status": prioritylevelconfiguration.StatusStrategy,
		"ingresses.networking.k8s.io":                                     ingress.Strategy,
		"ingresses.networking.k8s.io/status":                              ingress.StatusStrategy,
		"ingressclasses.networking.k8s.io":                                ingressclass.Strategy,
		"ipaddresses.networking.k8s.io":                                   ipaddress.Strategy,
		"networkpolicies.networking.k8s.io":                               networkpolicy.Strategy,
		"servicecidrs.networking.k8s.io":                                  servicecidr.Strategy,
		"servicecidrs.networking.k8s.io/status":                           servicecidr.StatusStrategy,
		"runtimeclasses.node.k8s.io":                                      runtimeclass.Strategy,
		"poddisruptionbudgets.policy":                                     poddisruptionbudget.Strategy,
		"poddisruptionbudgets.policy/status":                              poddisruptionbudget.StatusStrategy,
		"clusterroles.rbac.authorization.k8s.io":                          clusterrole.Strategy,
		"clusterrolebindings.rbac.authorization.k8s.io":                   clusterrolebinding.Strategy,
		"roles.rbac.authorization.k8s.io":                                 role.Strategy,
		"rolebindings.rbac.authorization.k8s.io":                          rolebinding.Strategy,
		"deviceclasses.resource.k8s.io":                                   deviceclass.Strategy,
		"resourceslices.resource.k8s.io":                                  resourceslice.Strategy,
		"priorityclasses.scheduling.k8s.io":                               priorityclass.Strategy,
		"workloads.scheduling.k8s.io":                                     workload.Strategy,
		"csidrivers.storage.k8s.io":                                       csidriver.Strategy,
		"csinodes.storage.k8s.io":                                         csinode.Strategy,
		"csistoragecapacities.storage.k8s.io":                             csistoragecapacity.Strategy,
		"storageclasses.storage.k8s.io":                                   storageclass.Strategy,
		"volumeattachments.storage.k8s.io":                                volumeattachment.Strategy,
		"volumeattachments.storage.k8s.io/status":                         volumeattachment.StatusStrategy,
		"volumeattributesclasses.storage.k8s.io":                          volumeattributesclass.Strategy,
		"resourceclaims.resource.k8s.io":                                  claims,
		"resourceclaims.resource.k8s.io/status":                           resourceclaim.NewStatusStrategy(claims),
		"resourceclaimtemplates.resource.k8s.io":                          resourceclaimtemplate.NewStrategy(namespaces),
		"podgroups.scheduling.k8s.io":                                     groups,
		"podgroups.scheduling.k8s.io/status":                              podgroup.NewStatusStrategy(groups),
		"validatingadmissionpolicies.admissionregistration.k8s.io":        policies,
		"validatingadmissionpolicies.admissionregistration.k8s.io/status": validatingadmissionpolicy.NewStatusStrategy(policies),
		"mutatingadmissionpolicies.admissionregistration.k8s.io":          mutatingadmissionpolicy.NewStrategy(nil, nil),
		"mutatingadmissionpolicybindings.admissionregistration.k8s.io":    mutatingadmissionpolicybinding.NewStrategy(nil, nil, nil),
	}
}
