package podspec

import v1 "k8s.io/api/core/v1"

// CommonUser returns the user that all containers of the pod run as; nil if they differ or one does not
// specify a user.
func CommonUser(pod *v1.Pod) *int64 {
	var of *int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		of = sc.RunAsUser
	}
	var common *int64
	for c := range Containers(pod) {
		user := of
		if sc := c.SecurityContext; sc != nil && sc.RunAsUser != nil {
			user = sc.RunAsUser
		}
		if user == nil || common != nil && *common != *user {
			return nil
		}
		common = user
	}
	return common
}
