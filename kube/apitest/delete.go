//lint:file-ignore SA1019 clients may still send the deprecated orphanDependents

package apitest

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func (s *Server) delete(r *request) (answer, error) {
	if r.Subresource != "" {
		return answer{}, apierrors.NewMethodNotSupported(r.kind.resource(), "delete")
	}
	opts, err := r.deleteOptions()
	if err != nil {
		return answer{}, err
	}
	return s.deleteNamed(r, opts)
}

// deleteOptions returns the options in the body and in the query.
func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	opts, err := r.decodeOptions()
	if err != nil {
		return nil, err
	}
	if grace := r.query.Get("gracePeriodSeconds"); grace != "" && opts.GracePeriodSeconds == nil {
		seconds, err := parseVersion(grace)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("gracePeriodSeconds: invalid value %q", grace))
		}
		opts.GracePeriodSeconds = &seconds
	}
	if policy := metav1.DeletionPropagation(r.query.Get("propagationPolicy")); policy != "" && opts.PropagationPolicy == nil {
		opts.PropagationPolicy = &policy
	}
	if opts.OrphanDependents == nil && r.query.Get("orphanDependents") == "true" {
		opts.OrphanDependents = new(true)
	}
	if len(opts.DryRun) > 0 {
		r.query["dryRun"] = opts.DryRun
	}
	if p := opts.PropagationPolicy; p != nil {
		switch *p {
		case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		default:
			return nil, invalidOptions("Delete", field.NotSupported(field.NewPath("propagationPolicy"), *p, []string{"Foreground", "Background", "Orphan", "nil"}))
		}
		if opts.OrphanDependents != nil {
			return nil, invalidOptions("Delete", field.Invalid(field.NewPath("propagationPolicy"), *p, "orphanDependents and deletionPropagation cannot be both set"))
		}
	}
	return opts, r.check()
}

func (s *Server) deleteNamed(r *request, opts *metav1.DeleteOptions) (answer, error) {
	for {
		was, err := s.get(r)
		if err != nil {
			return answer{}, err
		}
		o := was.object
		if p := opts.Preconditions; p != nil {
			switch {
			case p.UID != nil && *p.UID != o.GetUID():
				return answer{}, r.unmet(fmt.Sprintf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, o.GetUID()))
			case p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion():
				return answer{}, r.unmet(fmt.Sprintf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, o.GetResourceVersion()))
			}
		}
		if r.kind.plural == "namespaces" && !r.kind.custom && immortal(r.Name) {
			return answer{}, apierrors.NewForbidden(r.kind.resource(), r.Name, errors.New("this namespace may not be deleted"))
		}
		if err := s.admit(r, o, nil); err != nil {
			return answer{}, err
		}
		if err := s.mutate(r, o, nil); err != nil {
			return answer{}, err
		}
		if err := s.validated(r, o, nil); err != nil {
			return answer{}, err
		}
		next, grace := deletion(r.kind, o, opts)
		gone := grace == 0 && len(next.GetFinalizers()) == 0 && !finalizing(next)
		if r.dryRun() {
			return s.deleted(r, next, gone), nil
		}
		if !gone && same(o, next) {
			return answer{item: was, code: http.StatusOK}, nil
		}
		if gone && r.kind.graceful() { // the timestamp is stored before the object is removed
			if was = s.mark(r.kind, was, next); was == nil {
				continue
			}
			time.Sleep(s.RemovalLatency)
			next = detached(was.object)
		}
		if done := s.commit(r.kind, was, next); done != nil {
			o := done.object
			if gone {
				o = detached(o)
				o.SetResourceVersion(strconv.FormatInt(done.version, 10))
			}
			return s.deleted(r, o, gone), nil
		}
	}
}

// graceful reports whether objects have a grace period, also if it is 0.
func (k *kind) graceful() bool { return k.plural == "pods" && k.group == "" }

// mark stores next, which is to be removed, in place of was; nil if was is no longer stored.
func (s *Server) mark(k *kind, was *item, next object) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table.of(k).all[keyOf(was.object)] != was {
		return nil
	}
	return s.putLocked(k, next)
}

// unmet is the answer to a delete whose preconditions do not hold; it names the kind.
func (r *request) unmet(text string) error {
	return apierrors.NewConflict(schema.GroupResource{Group: r.kind.group, Resource: r.kind.kind}, r.Name, errors.New(text))
}

// deleted is the answer to a delete: the object if it still exists, or if its resource
// returns deleted objects, and else a Status.
func (s *Server) deleted(r *request, o object, gone bool) answer {
	switch r.kind.plural {
	case "pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims", "podtemplates", "resourcequotas":
		gone = false
	}
	if gone {
		return answer{object: success(r, o), code: http.StatusOK}
	}
	return answer{item: &item{kind: r.kind, object: o}, code: http.StatusOK}
}

// deletion returns an object marked for deletion and the remaining grace period in seconds.
func deletion(k *kind, o object, opts *metav1.DeleteOptions) (object, int64) {
	grace := int64(0)
	if pod, ok := o.(*v1.Pod); ok {
		grace = podGrace(pod, opts.GracePeriodSeconds)
	}
	next := detached(o)
	next.SetFinalizers(finalizers(k, o, opts))
	if o.GetDeletionTimestamp() != nil {
		present := o.GetDeletionGracePeriodSeconds()
		if present != nil && *present <= grace {
			return next, *present // a grace period can only be shortened
		}
	}
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second))
	next.SetDeletionTimestamp(&at)
	next.SetDeletionGracePeriodSeconds(&grace)
	if o.GetDeletionTimestamp() == nil && o.GetGeneration() > 0 {
		next.SetGeneration(o.GetGeneration() + 1)
	}
	if ns, ok := next.(*v1.Namespace); ok {
		ns.Status.Phase = v1.NamespaceTerminating
	}
	return next, grace
}

// immortal reports whether a namespace must not be deleted.
func immortal(namespace string) bool {
	return namespace == "default" || namespace == "kube-system" || namespace == "kube-public"
}

// podGrace returns the grace period of a pod in seconds. Pods that no node runs have none.
func podGrace(pod *v1.Pod, requested *int64) int64 {
	grace := int64(v1.DefaultTerminationGracePeriodSeconds)
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		grace = *pod.Spec.TerminationGracePeriodSeconds
	}
	if requested != nil {
		grace = *requested
	}
	switch {
	case pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed:
		return 0
	case grace < 0:
		return 1
	}
	return grace
}

// finalizers returns the finalizers with those of the propagation policy.
func finalizers(k *kind, o object, opts *metav1.DeleteOptions) []string {
	out := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool {
		return (opts.PropagationPolicy != nil || opts.OrphanDependents != nil) && (f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents)
	})
	switch policy(k, o, opts) {
	case metav1.DeletePropagationOrphan:
		out = append(out, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) == 0 {
		return nil
	}
	return out
}

// policy returns the propagation policy of a deletion.
func policy(k *kind, o object, opts *metav1.DeleteOptions) metav1.DeletionPropagation {
	switch {
	case opts.PropagationPolicy != nil:
		return *opts.PropagationPolicy
	case opts.OrphanDependents != nil && *opts.OrphanDependents:
		return metav1.DeletePropagationOrphan
	case opts.OrphanDependents != nil:
		return metav1.DeletePropagationBackground
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents):
		return metav1.DeletePropagationOrphan
	case slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents):
		return metav1.DeletePropagationForeground
	case k.plural == "jobs" && k.group == "batch" || k.plural == "replicationcontrollers" && k.group == "":
		return metav1.DeletePropagationOrphan // for compatibility with old clients
	}
	return metav1.DeletePropagationBackground
}

// deleteCollection deletes the objects of a list.
func (s *Server) deleteCollection(r *request) (answer, error) {
	if r.kind.namespaced && r.Namespace == "" {
		return answer{}, apierrors.NewMethodNotSupported(r.kind.resource(), "deletecollection")
	}
	opts, err := r.deleteOptions()
	if err != nil {
		return answer{}, err
	}
	l, err := r.listing()
	if err != nil {
		return answer{}, err
	}
	found, meta, err := s.page(r, l)
	if err != nil {
		return answer{}, err
	}
	for _, i := range found {
		one := *r
		one.Namespace, one.Name = i.object.GetNamespace(), i.object.GetName()
		if _, err := s.deleteNamed(&one, opts); err != nil && !apierrors.IsNotFound(err) {
			return answer{}, err
		}
	}
	list := *r
	list.format.as = ""
	if list.format.protobuf {
		o, err := s.list(&list, found, meta)
		return answer{object: o, code: http.StatusOK}, err
	}
	data, err := s.joined(&list, found, meta)
	return answer{data: data, code: http.StatusOK}, err
}
