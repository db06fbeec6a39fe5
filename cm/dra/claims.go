package dra

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A ClaimRef identifies a ResourceClaim.
type ClaimRef struct {
	Namespace, Name string
	UID             types.UID
}

// String returns "namespace/name".
func (r ClaimRef) String() string { return r.Namespace + "/" + r.Name }

// A podClaim is a ResourceClaim of a pod.
type podClaim struct {
	name string // of the ResourceClaim

	// generated claims must be owned by the pod or its group: a user may have created an
	// object with that name.
	generated bool
}

// podClaims returns the ResourceClaims of a pod, in the order of the spec, each once, also
// those that no container uses (rule dra-5). It returns an error if the claim of a template
// has not been created.
func podClaims(pod *v1.Pod) ([]podClaim, error) {
	var all []podClaim
	add := func(c podClaim) {
		if !slices.ContainsFunc(all, func(other podClaim) bool { return other.name == c.name }) {
			all = append(all, c)
		}
	}
	for i := range pod.Spec.ResourceClaims {
		c, ok, err := resolve(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err
		}
		if ok {
			add(c)
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil && len(s.RequestMappings) > 0 {
		add(podClaim{name: s.ResourceClaimName, generated: true})
	}
	return all, nil
}

// resolve returns the ResourceClaim of an entry of spec.resourceClaims. ok is false if the
// control plane has recorded that none is necessary.
func resolve(pod *v1.Pod, entry *v1.PodResourceClaim) (c podClaim, ok bool, err error) {
	switch {
	case entry.ResourceClaimName != nil:
		return podClaim{name: *entry.ResourceClaimName}, true, nil
	case entry.ResourceClaimTemplateName == nil:
		return c, false, fmt.Errorf("pod claim %s: neither resourceClaimName nor resourceClaimTemplateName is set", entry.Name)
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		if s.Name != entry.Name {
			continue
		}
		if s.ResourceClaimName == nil {
			return c, false, nil
		}
		return podClaim{name: *s.ResourceClaimName, generated: true}, true, nil
	}
	return c, false, fmt.Errorf("pod claim %s: ResourceClaim not created yet", entry.Name)
}

// A use is the usage of a claim by a container.
type use struct {
	claim    string // name of the ResourceClaim
	request  string // "": all requests
	resource v1.ResourceName
}

// containerUses returns the claims that a container uses, in the order of the spec,
// followed by those of its extended resources. resource is the name in
// status.containerStatuses[].allocatedResourcesStatus.
func containerUses(pod *v1.Pod, c *v1.Container) ([]use, error) {
	var all []use
	for _, u := range c.Resources.Claims {
		i := slices.IndexFunc(pod.Spec.ResourceClaims, func(e v1.PodResourceClaim) bool { return e.Name == u.Name })
		if i < 0 {
			return nil, fmt.Errorf("container %s: pod has no claim %s", c.Name, u.Name)
		}
		claim, ok, err := resolve(pod, &pod.Spec.ResourceClaims[i])
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, use{claim.name, u.Request, resourceName(u.Name, u.Request)})
		}
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for _, m := range s.RequestMappings {
			if m.ContainerName == c.Name {
				all = append(all, use{s.ResourceClaimName, m.RequestName, resourceName(s.ResourceClaimName, m.RequestName)})
			}
		}
	}
	return all, nil
}

func resourceName(claim, request string) v1.ResourceName {
	if request != "" {
		claim += "/" + request
	}
	return v1.ResourceName("claim:" + claim)
}

// checkClaim returns why the pod must not use the claim; nil if it may. prepared reports
// that the claim is already prepared for the pod: it then remains usable while it is being
// deleted, as its finalizer keeps it until the pod has terminated.
func checkClaim(pod *v1.Pod, c podClaim, claim *resourceapi.ResourceClaim, prepared bool) error {
	ref := ClaimRef{claim.Namespace, claim.Name, claim.UID}
	switch {
	case c.generated && !ownedBy(pod, claim):
		return fmt.Errorf("ResourceClaim %s was not created for pod %s/%s (%s)", ref, pod.Namespace, pod.Name, pod.UID)
	case claim.DeletionTimestamp != nil && !prepared:
		return fmt.Errorf("ResourceClaim %s is being deleted", ref)
	case claim.Status.Allocation == nil:
		return fmt.Errorf("ResourceClaim %s is not allocated", ref)
	case !reservedFor(pod, claim):
		return fmt.Errorf("pod %s/%s (%s) is not allowed to use ResourceClaim %s (%s): not reserved for it", pod.Namespace, pod.Name, pod.UID, ref, ref.UID)
	}
	return nil
}

const (
	groupAPI      = "scheduling.k8s.io"
	groupKind     = "PodGroup"
	groupResource = "podgroups"
)

// group returns the name of the pod's PodGroup; "" if it has none.
func group(pod *v1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

// ownedBy reports whether the claim was generated for the pod or for its PodGroup.
func ownedBy(pod *v1.Pod, claim *resourceapi.ResourceClaim) bool {
	owner := metav1.GetControllerOf(claim)
	if owner == nil {
		return false
	}
	if owner.Kind == groupKind && strings.HasPrefix(owner.APIVersion, groupAPI+"/") {
		return owner.Name == group(pod)
	}
	return owner.UID == pod.UID
}

// reservedFor reports whether the claim is reserved for the pod or for its PodGroup.
func reservedFor(pod *v1.Pod, claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool {
		if r.APIGroup == groupAPI && r.Resource == groupResource {
			return r.Name != "" && r.Name == group(pod)
		}
		return r.APIGroup == "" && r.Resource == "pods" && r.UID == pod.UID
	})
}

// A driverClaim is the part of an allocation that concerns one driver.
type driverClaim struct {
	skipPrepare, skipUnprepare bool // the calls that no device of the driver needs
}

// allocatedDrivers returns the drivers of the devices that are allocated to a claim.
func allocatedDrivers(claim *resourceapi.ResourceClaim) map[string]driverClaim {
	all := map[string]driverClaim{}
	for i := range claim.Status.Allocation.Devices.Results {
		r := &claim.Status.Allocation.Devices.Results[i]
		d, ok := all[r.Driver]
		if !ok {
			d = driverClaim{true, true}
		}
		d.skipPrepare = d.skipPrepare && skips(r, resourceapi.SkipNodeOperationNodePrepareResources)
		d.skipUnprepare = d.skipUnprepare && skips(r, resourceapi.SkipNodeOperationNodeUnprepareResources)
		all[r.Driver] = d
	}
	return all
}

func skips(r *resourceapi.DeviceRequestAllocationResult, op resourceapi.SkipNodeOperation) bool {
	return slices.Contains(r.SkipNodeOperations, op) || slices.Contains(r.SkipNodeOperations, resourceapi.SkipNodeOperationAll)
}
