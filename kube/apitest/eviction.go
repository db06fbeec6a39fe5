package apitest

import (
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// evict deletes a pod unless a disruption budget forbids it.
func (s *Server) evict(r *request) (answer, error) {
	decoded, err := r.decode(scheme.Scheme, policyv1.SchemeGroupVersion.WithKind("Eviction"))
	if err != nil {
		return answer{}, err
	}
	eviction := decoded.(*policyv1.Eviction)
	if eviction.Name != "" && eviction.Name != r.Name {
		return answer{}, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	opts := eviction.DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if len(opts.DryRun) > 0 {
		r.query["dryRun"] = opts.DryRun
	}
	was, err := s.get(r)
	if err != nil {
		return answer{}, err
	}
	pod := was.object.(*v1.Pod)
	terminated := pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
	if !terminated && pod.Status.Phase != v1.PodPending && pod.DeletionTimestamp == nil {
		if err := s.disrupt(r, pod); err != nil {
			return answer{}, err
		}
	}
	if !r.dryRun() && pod.DeletionTimestamp == nil {
		s.edit(ref{r.kind, keyOf(pod)}, func(o object) {
			setPodCondition(o.(*v1.Pod), v1.PodCondition{
				Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			})
		})
	}
	if _, err := s.deleteNamed(r, opts); err != nil {
		return answer{}, err
	}
	return answer{object: created(), code: http.StatusCreated}, nil
}

// disrupt counts the disruption of a pod in its budget.
func (s *Server) disrupt(r *request, pod *v1.Pod) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kindsLocked()[schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets"}]
	var found []*item
	for _, i := range sorted(s.table.of(k).in(pod.Namespace), everything) {
		if matchesSelector(i.object.(*policyv1.PodDisruptionBudget).Spec.Selector, pod) {
			found = append(found, i)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	}
	pdb := found[0].object.(*policyv1.PodDisruptionBudget).DeepCopy()
	observed := pdb.Status.ObservedGeneration > 0
	if !observed { // there is no disruption controller
		s.budgetLocked(r.kind, pdb)
	}
	if !isReady(pod) {
		healthy := pdb.Status.CurrentHealthy >= pdb.Status.DesiredHealthy && pdb.Status.DesiredHealthy > 0
		if p := pdb.Spec.UnhealthyPodEvictionPolicy; healthy || p != nil && *p == policyv1.AlwaysAllow {
			return nil
		}
	}
	if observed && pdb.Status.ObservedGeneration < pdb.Generation {
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget %s is still being processed by the server.", pdb.Name),
		}}
		return err
	}
	if pdb.Status.DisruptionsAllowed <= 0 {
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", pdb.Name, pdb.Status.DesiredHealthy, pdb.Status.CurrentHealthy),
		}}
		return err
	}
	if r.dryRun() || !observed {
		return nil
	}
	pdb.Status.DisruptionsAllowed--
	if pdb.Status.DisruptedPods == nil {
		pdb.Status.DisruptedPods = map[string]metav1.Time{}
	}
	pdb.Status.DisruptedPods[pod.Name] = now()
	s.putLocked(k, pdb)
	return nil
}

// budgetLocked computes the status of a budget as the disruption controller does; the pods
// that match are the expected ones.
func (s *Server) budgetLocked(pods *kind, pdb *policyv1.PodDisruptionBudget) {
	expected, healthy := 0, 0
	for _, i := range s.table.of(pods).in(pdb.Namespace) {
		pod := i.object.(*v1.Pod)
		if !matchesSelector(pdb.Spec.Selector, pod) || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue
		}
		expected++
		if isReady(pod) && pod.DeletionTimestamp == nil {
			healthy++
		}
	}
	desired := 0
	switch {
	case pdb.Spec.MaxUnavailable != nil:
		n, _ := intstr.GetScaledValueFromIntOrPercent(pdb.Spec.MaxUnavailable, expected, true)
		desired = max(expected-n, 0)
	case pdb.Spec.MinAvailable != nil:
		desired, _ = intstr.GetScaledValueFromIntOrPercent(pdb.Spec.MinAvailable, expected, true)
	}
	pdb.Status.ExpectedPods, pdb.Status.CurrentHealthy, pdb.Status.DesiredHealthy = int32(expected), int32(healthy), int32(desired)
	pdb.Status.DisruptionsAllowed = int32(max(healthy-desired, 0))
}

func matchesSelector(selector *metav1.LabelSelector, pod *v1.Pod) bool {
	matcher, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && matcher.Matches(labels.Set(pod.Labels))
}

func isReady(pod *v1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
