package podconfig

import (
	"fmt"
	"math"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runAs sets the user and group of the container. It returns an error if runAsNonRoot
// forbids them.
func runAs(sc *runtimeapi.LinuxContainerSecurityContext, pod *v1.Pod, c *v1.Container, user User) error {
	own, of := contexts(pod, c)
	uid := or(own.RunAsUser, of.RunAsUser)
	if err := checkNonRoot(pod, c, or(own.RunAsNonRoot, of.RunAsNonRoot), uid, user); err != nil {
		return err
	}
	switch {
	case uid != nil:
		sc.RunAsUser = &runtimeapi.Int64Value{Value: *uid}
	case user.UID != nil:
		sc.RunAsUser = &runtimeapi.Int64Value{Value: *user.UID}
	case user.Name != "":
		sc.RunAsUsername = user.Name
	default: // root; runtimes reject a group without a user
		sc.RunAsUser = &runtimeapi.Int64Value{}
	}
	if gid := or(own.RunAsGroup, of.RunAsGroup); gid != nil {
		sc.RunAsGroup = &runtimeapi.Int64Value{Value: *gid}
	}
	return nil
}

// checkNonRoot returns an error if the container must not run as root but does, or may
// (rule se-5). The texts are the kubelet's.
func checkNonRoot(pod *v1.Pod, c *v1.Container, nonRoot *bool, uid *int64, user User) error {
	where := fmt.Sprintf("pod: %q, container: %s", pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", c.Name)
	switch {
	case nonRoot == nil || !*nonRoot:
		return nil
	case uid != nil && *uid == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy (%s)", where)
	case uid != nil:
		return nil
	case user.UID != nil && *user.UID == 0 || user.UID == nil && user.Name == "":
		return fmt.Errorf("container has runAsNonRoot and image will run as root (%s)", where)
	case user.UID == nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root (%s)", user.Name, where)
	}
	if errs := validation.IsValidUserID(*user.UID); len(errs) > 0 {
		return fmt.Errorf("container has runAsNonRoot and image has an invalid user id (%d). (Must be 1-(%d)): %s (%s)",
			*user.UID, math.MaxInt32, strings.Join(errs, "; "), where)
	}
	return nil
}

// supplementalGroups returns fsGroup, the groups of the spec, then those of volumes.
func supplementalGroups(pod *v1.Pod, volumeGroups []int64) []int64 {
	var groups []int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		if sc.FSGroup != nil {
			groups = append(groups, *sc.FSGroup)
		}
		groups = append(groups, sc.SupplementalGroups...)
	}
	return append(groups, volumeGroups...)
}

func groupsPolicy(sc *v1.PodSecurityContext) (runtimeapi.SupplementalGroupsPolicy, error) {
	if sc.SupplementalGroupsPolicy == nil {
		return runtimeapi.SupplementalGroupsPolicy_Merge, nil
	}
	switch p := *sc.SupplementalGroupsPolicy; p {
	case v1.SupplementalGroupsPolicyMerge, "":
		return runtimeapi.SupplementalGroupsPolicy_Merge, nil
	case v1.SupplementalGroupsPolicyStrict:
		return runtimeapi.SupplementalGroupsPolicy_Strict, nil
	default:
		return 0, fmt.Errorf("unsupported supplementalGroupsPolicy: %s", p)
	}
}
