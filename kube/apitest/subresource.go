package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// review answers a review: that of Server.Extension. Without one, all access is permitted,
// because the server does not authorize; token reviews are returned as they are.
func (s *Server) review(r *request, one object) (answer, error) {
	switch o := one.(type) {
	case *authorizationv1.SubjectAccessReview:
		o.Status.Allowed = true
	case *authorizationv1.SelfSubjectAccessReview:
		o.Status.Allowed = true
	case *authorizationv1.LocalSubjectAccessReview:
		o.Status.Allowed = true
	}
	if s.Extension != nil {
		if err := s.Extension.Review(r.ctx, r.Call, r.user, one); err != nil {
			return answer{}, err
		}
	}
	if err := s.admit(r, nil, one); err != nil {
		return answer{}, err
	}
	return answer{object: one, code: http.StatusCreated}, nil
}

// token returns a new token of a service account, which need not exist.
func (s *Server) token(r *request) (answer, error) {
	decoded, err := r.decode(scheme.Scheme, authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"))
	if err != nil {
		return answer{}, err
	}
	req := decoded.(*authenticationv1.TokenRequest)
	if s.Extension != nil {
		if _, err := s.get(r); err != nil {
			return answer{}, err
		}
		if err := s.Extension.Review(r.ctx, r.Call, r.user, req); err != nil {
			return answer{}, err
		}
		return answer{object: req, code: http.StatusCreated}, nil
	}
	s.mu.Lock()
	s.table.tokens++
	n := s.table.tokens
	s.mu.Unlock()
	seconds := int64(3600)
	if req.Spec.ExpirationSeconds != nil {
		seconds = *req.Spec.ExpirationSeconds
	}
	req.Status.Token = fmt.Sprintf("token-%d", n)
	req.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second))
	return answer{object: req, code: http.StatusCreated}, nil
}

// bind assigns a pod to a node, once.
func (s *Server) bind(r *request) (answer, error) {
	decoded, err := r.decode(scheme.Scheme, v1.SchemeGroupVersion.WithKind("Binding"))
	if err != nil {
		return answer{}, err
	}
	binding := decoded.(*v1.Binding)
	if binding.Target.Name == "" {
		return answer{}, apierrors.NewBadRequest("target.name: Required value")
	}
	for {
		was, err := s.get(r)
		if err != nil {
			return answer{}, err
		}
		pod := was.object.(*v1.Pod)
		var problem string
		switch {
		case binding.UID != "" && binding.UID != pod.UID:
			problem = fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", binding.UID, pod.UID)
		case pod.DeletionTimestamp != nil:
			problem = fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", pod.Name)
		case pod.Spec.NodeName != "":
			problem = fmt.Sprintf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
		case len(pod.Spec.SchedulingGates) > 0:
			problem = fmt.Sprintf("pod %s has non-empty .spec.schedulingGates", pod.Name)
		}
		if problem != "" {
			return answer{}, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, r.Name, errors.New(problem))
		}
		bound := pod.DeepCopy()
		bound.Spec.NodeName = binding.Target.Name
		for name, value := range binding.Annotations {
			metav1.SetMetaDataAnnotation(&bound.ObjectMeta, name, value)
		}
		setPodCondition(bound, v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
		if err := s.admit(r, pod, bound); err != nil {
			return answer{}, err
		}
		if r.dryRun() {
			return answer{object: created(), code: http.StatusCreated}, nil
		}
		next, err := s.track(r, pod, bound)
		if err != nil {
			return answer{}, err
		}
		if s.commit(r.kind, was, next) != nil {
			return answer{object: created(), code: http.StatusCreated}, nil
		}
	}
}

// bindNamed assigns the pod that has the name of a Binding.
func (s *Server) bindNamed(r *request, binding object) (answer, error) {
	to := *r
	s.mu.Lock()
	to.kind = s.kindsLocked()[schema.GroupResource{Resource: "pods"}]
	s.mu.Unlock()
	to.gvk = to.kind.stored()
	to.Resource, to.Subresource, to.Name = "pods", "binding", binding.GetName()
	return s.bind(&to)
}

func setPodCondition(pod *v1.Pod, c v1.PodCondition) {
	c.LastTransitionTime = now()
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(old v1.PodCondition) bool { return old.Type == c.Type })
	pod.Status.Conditions = append(pod.Status.Conditions, c)
}

// created is the answer of a subresource that was posted.
func created() *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}
}

// narrow returns current with the part of edited that a subresource may change.
func (r *request) narrow(current, edited object) object {
	out := current.DeepCopyObject().(object)
	switch to := out.(type) {
	case *v1.Namespace:
		to.Spec.Finalizers = edited.(*v1.Namespace).Spec.Finalizers
	case *certificatesv1.CertificateSigningRequest:
		to.Status.Conditions = edited.(*certificatesv1.CertificateSigningRequest).Status.Conditions
	case *v1.Pod:
		from := edited.(*v1.Pod)
		if r.Subresource == "ephemeralcontainers" {
			to.Spec.EphemeralContainers = from.Spec.EphemeralContainers
			break
		}
		for i := range min(len(to.Spec.Containers), len(from.Spec.Containers)) {
			to.Spec.Containers[i].Resources = from.Spec.Containers[i].Resources
			to.Spec.Containers[i].ResizePolicy = from.Spec.Containers[i].ResizePolicy
		}
		to.Spec.Resources = from.Spec.Resources
	}
	return out
}

// unconnected is the answer to a stream without a handler.
func unconnected(r *request) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("apitest: %s of %s %q: Server.Connect is nil", r.Subresource, strings.TrimSuffix(r.Resource, "s"), r.Name),
	}}
}
