package podenv

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// valueFrom returns the value of variable v, and whether it has one: an optional one may not. Errors
// about ConfigMaps and Secrets contain the kubelet's text after the name of the variable (rule pe-6).
func valueFrom(in Inputs, c *v1.Container, v *v1.EnvVar) (value string, found bool, err error) {
	src := v.ValueFrom
	switch {
	case src.ConfigMapKeyRef != nil:
		ref := src.ConfigMapKeyRef
		data, err := in.configMap(ref.Name)
		return keyOf(data, err, isTrue(ref.Optional), "couldn't find key %v in ConfigMap %v/%v", ref.Key, in.Pod.Namespace, ref.Name)
	case src.SecretKeyRef != nil:
		ref := src.SecretKeyRef
		data, err := in.secret(ref.Name)
		return keyOf(data, err, isTrue(ref.Optional), "couldn't find key %v in Secret %v/%v", ref.Key, in.Pod.Namespace, ref.Name)
	case src.FieldRef != nil:
		value, err = FieldValue(in, src.FieldRef)
		found = true
	case src.ResourceFieldRef != nil:
		value, err = ResourceFieldValue(in, c, src.ResourceFieldRef)
		found = true
	case src.FileKeyRef != nil:
		value, found, err = in.fileKey(src.FileKeyRef)
	default:
		err = errors.New("unsupported or empty valueFrom")
	}
	if err != nil {
		return "", false, fmt.Errorf("env %s: %w", v.Name, err)
	}
	return value, found, nil
}

// FieldValue returns the value of a fieldRef (rule pe-7). The value of a missing label or annotation
// is empty. It reads only Pod, PodIPs and HostIPs of in.
func FieldValue(in Inputs, ref *v1.ObjectFieldSelector) (string, error) {
	if ref.APIVersion != "" && ref.APIVersion != "v1" {
		return "", fmt.Errorf("fieldRef: unsupported apiVersion: %v", ref.APIVersion)
	}
	switch ref.FieldPath {
	case "metadata.name":
		return in.Pod.Name, nil
	case "metadata.namespace":
		return in.Pod.Namespace, nil
	case "metadata.uid":
		return string(in.Pod.UID), nil
	case "spec.nodeName":
		return in.Pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return in.Pod.Spec.ServiceAccountName, nil
	case "status.hostIP":
		return first(in.HostIPs), nil
	case "status.hostIPs":
		return strings.Join(in.HostIPs, ","), nil
	case "status.podIP":
		return first(podIPs(in)), nil
	case "status.podIPs":
		return strings.Join(podIPs(in), ","), nil
	}
	if key, ok := subscript(ref.FieldPath, "metadata.labels"); ok {
		return in.Pod.Labels[key], nil
	}
	if key, ok := subscript(ref.FieldPath, "metadata.annotations"); ok {
		return in.Pod.Annotations[key], nil
	}
	return "", fmt.Errorf("fieldRef: unsupported fieldPath: %v", ref.FieldPath)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// podIPs returns the IPs of the pod as in its status (rule st-45): the first one of the node's
// primary family, then the first one of the other family. If the IPs of the node are unknown, the
// primary family is the family of the sandbox's first IP.
func podIPs(in Inputs) []string {
	var ips []netip.Addr
	for _, s := range in.PodIPs {
		if ip, err := netip.ParseAddr(s); err == nil {
			ips = append(ips, ip.Unmap())
		}
	}
	if len(ips) == 0 {
		return nil
	}
	four := ips[0].Is4()
	for _, s := range in.HostIPs {
		if ip, err := netip.ParseAddr(s); err == nil {
			four = ip.Unmap().Is4()
			break
		}
	}
	var picked []string
	for _, family := range []bool{four, !four} {
		for _, ip := range ips {
			if ip.Is4() == family {
				picked = append(picked, ip.String())
				break
			}
		}
	}
	return picked
}

// subscript returns the key of a path such as metadata.labels['key'].
func subscript(path, name string) (string, bool) {
	key, ok := strings.CutPrefix(path, name+"['")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(key, "']")
}
