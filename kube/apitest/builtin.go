package apitest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// builtin are the resources of Kubernetes: a line "group versions", the stored version
// first, followed by lines "plural Kind scope words", where the words are subresources,
// traits and, after =, short names. The scope is n (namespaced) or c (of the cluster).
// Versions that Kubernetes removed (extensions/v1beta1, apps/v1beta1) are not listed.
const builtin = `
core v1
 pods Pod n status binding eviction ephemeralcontainers resize log exec attach portforward proxy generation all =po
 services Service n status proxy all =svc
 bindings Binding n review
 secrets Secret n
 configmaps ConfigMap n =cm
 serviceaccounts ServiceAccount n token =sa
 endpoints Endpoints n =ep
 events Event n =ev
 persistentvolumeclaims PersistentVolumeClaim n status =pvc
 persistentvolumes PersistentVolume c status =pv
 nodes Node c status proxy =no
 namespaces Namespace c status finalize =ns
 limitranges LimitRange n =limits
 resourcequotas ResourceQuota n status =quota
 podtemplates PodTemplate n generation
 replicationcontrollers ReplicationController n status scale generation all =rc
admissionregistration.k8s.io v1
 mutatingadmissionpolicies MutatingAdmissionPolicy c generation
 mutatingadmissionpolicybindings MutatingAdmissionPolicyBinding c generation
 mutatingwebhookconfigurations MutatingWebhookConfiguration c generation
 validatingadmissionpolicies ValidatingAdmissionPolicy c status generation
 validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding c generation
 validatingwebhookconfigurations ValidatingWebhookConfiguration c generation
apps v1
 controllerrevisions ControllerRevision n
 daemonsets DaemonSet n status generation all =ds
 deployments Deployment n status scale generation all =deploy
 replicasets ReplicaSet n status scale generation all =rs
 statefulsets StatefulSet n status scale generation all =sts
authentication.k8s.io v1
 selfsubjectreviews SelfSubjectReview c review
 tokenreviews TokenReview c review
authorization.k8s.io v1
 localsubjectaccessreviews LocalSubjectAccessReview n review
 selfsubjectaccessreviews SelfSubjectAccessReview c review
 selfsubjectrulesreviews SelfSubjectRulesReview c review
 subjectaccessreviews SubjectAccessReview c review
autoscaling v2,v1
 horizontalpodautoscalers HorizontalPodAutoscaler n status all =hpa
batch v1
 cronjobs CronJob n status generation all =cj
 jobs Job n status generation all
certificates.k8s.io v1,v1beta1
 certificatesigningrequests CertificateSigningRequest c status approval =csr
 clustertrustbundles ClusterTrustBundle c
 podcertificaterequests PodCertificateRequest n status
coordination.k8s.io v1
 leases Lease n
coordination.k8s.io v1beta1
 leasecandidates LeaseCandidate n
discovery.k8s.io v1
 endpointslices EndpointSlice n generation
events.k8s.io v1
 events Event n =ev
flowcontrol.apiserver.k8s.io v1
 flowschemas FlowSchema c status generation
 prioritylevelconfigurations PriorityLevelConfiguration c status generation
internal.apiserver.k8s.io v1alpha1
 storageversions StorageVersion c status
networking.k8s.io v1
 ingresses Ingress n status generation =ing
 ingressclasses IngressClass c generation
 ipaddresses IPAddress c generation =ip
 networkpolicies NetworkPolicy n generation =netpol
 servicecidrs ServiceCIDR c status generation
node.k8s.io v1
 runtimeclasses RuntimeClass c
policy v1
 poddisruptionbudgets PodDisruptionBudget n status generation =pdb
rbac.authorization.k8s.io v1
 clusterroles ClusterRole c
 clusterrolebindings ClusterRoleBinding c
 roles Role n
 rolebindings RoleBinding n
resource.k8s.io v1
 deviceclasses DeviceClass c generation
 devicetaintrules DeviceTaintRule c status generation
 resourceclaims ResourceClaim n status
 resourceclaimtemplates ResourceClaimTemplate n
 resourceslices ResourceSlice c generation
resource.k8s.io v1alpha3
 resourcepoolstatusrequests ResourcePoolStatusRequest c status
scheduling.k8s.io v1
 priorityclasses PriorityClass c generation =pc
scheduling.k8s.io v1beta1
 podgroups PodGroup n status
 workloads Workload n
scheduling.k8s.io v1alpha3
 compositepodgroups CompositePodGroup n status
storage.k8s.io v1
 csidrivers CSIDriver c generation
 csinodes CSINode c
 csistoragecapacities CSIStorageCapacity n
 storageclasses StorageClass c =sc
 volumeattachments VolumeAttachment c status
 volumeattributesclasses VolumeAttributesClass c =vac
storagemigration.k8s.io v1
 storageversionmigrations StorageVersionMigration c status
apiextensions.k8s.io v1
 customresourcedefinitions CustomResourceDefinition c status generation =crd,crds
`

// builtinKinds returns the resources of Kubernetes with the types of client-go's scheme.
func builtinKinds() []*kind {
	var out []*kind
	var group string
	var versions []string
	for line := range strings.Lines(builtin) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			continue
		case line[0] != ' ':
			group, versions = words[0], strings.Split(words[1], ",")
			if group == "core" {
				group = ""
			}
			continue
		}
		k := &kind{group: group, plural: words[0], singular: strings.ToLower(words[1]), kind: words[1], namespaced: words[2] == "n"}
		for _, word := range words[3:] {
			short, isShort := strings.CutPrefix(word, "=")
			switch {
			case isShort:
				k.short = strings.Split(short, ",")
			case word == "generation":
				k.generation = true
			case word == "review":
				k.review = true
			case word == "all":
				k.categories = []string{"all"}
			default:
				k.subresources = append(k.subresources, word)
			}
		}
		for _, version := range versions {
			gvk := schema.GroupVersionKind{Group: group, Version: version, Kind: k.kind}
			if scheme.Scheme.Recognizes(gvk) {
				k.versions = append(k.versions, version)
			}
		}
		if len(k.versions) > 0 {
			k.scheme = scheme.Scheme
		} else {
			k.versions = slices.Clone(versions) // without Go types: CustomResourceDefinition
		}
		out = append(out, k)
	}
	return out
}
