package apiserver

import (
	"context"
	"fmt"
	"reflect"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/authentication"
	"k8s.io/kubernetes/pkg/apis/authentication/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/authentication/selfsubjectreview"
	"k8s.io/kubernetes/pkg/registry/authentication/tokenreview"
	"k8s.io/kubernetes/pkg/registry/authorization/localsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview"
	"k8s.io/kubernetes/pkg/registry/authorization/subjectaccessreview"
	"k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// reviewers returns the storage of kube-apiserver for reviews, by resource.
func (c *chain) reviewers() map[string]rest.Creater {
	scheme := legacyscheme.Scheme
	return map[string]rest.Creater{
		"selfsubjectreviews":        selfsubjectreview.NewREST(),
		"tokenreviews":              tokenreview.NewREST(c.access.requests, c.access.audiences),
		"localsubjectaccessreviews": localsubjectaccessreview.NewREST(c.access.authorizer, scheme),
		"selfsubjectaccessreviews":  selfsubjectaccessreview.NewREST(c.access.authorizer, scheme),
		"selfsubjectrulesreviews":   selfsubjectrulesreview.NewREST(c.access.rules),
		"subjectaccessreviews":      subjectaccessreview.NewREST(c.access.authorizer, scheme),
	}
}

// Review implements [apitest.Extension].
func (c *chain) Review(ctx context.Context, call apitest.Call, u apitest.User, o runtime.Object) error {
	ctx = request.WithUser(request.WithNamespace(ctx, call.Namespace), info(u))
	kind := o.GetObjectKind().GroupVersionKind()
	legacyscheme.Scheme.Default(o)
	in, err := internal(o, kind)
	if err != nil {
		return err
	}
	var out runtime.Object
	if token, ok := in.(*authentication.TokenRequest); ok {
		out, err = c.issue(ctx, call, token)
	} else if reviewer := c.reviews[call.Resource]; reviewer != nil {
		out, err = reviewer.Create(ctx, in, nil, &metav1.CreateOptions{})
	} else {
		return nil
	}
	if err != nil {
		return err
	}
	out, err = legacyscheme.Scheme.UnsafeConvertToVersion(out, kind.GroupVersion())
	if err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().Set(reflect.ValueOf(out).Elem())
	return nil
}

// issue issues a token for the ServiceAccount of the call.
func (c *chain) issue(ctx context.Context, call apitest.Call, req *authentication.TokenRequest) (*authentication.TokenRequest, error) {
	account := &core.ServiceAccount{}
	if err := c.read(account, v1.SchemeGroupVersion.WithKind("ServiceAccount"), "serviceaccounts", call.Namespace, call.Name); err != nil {
		return nil, err
	}
	at := field.NewPath("metadata")
	group := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest").GroupKind()
	switch {
	case req.Name != "" && req.Name != account.Name:
		return nil, apierrors.NewInvalid(group, account.Name, field.ErrorList{field.Invalid(at.Child("name"), req.Name, "must match the service account name if specified")})
	case req.Namespace != "" && req.Namespace != account.Namespace:
		return nil, apierrors.NewInvalid(group, account.Name, field.ErrorList{field.Invalid(at.Child("namespace"), req.Namespace, "must match the service account namespace if specified")})
	case req.UID != "" && req.UID != account.UID:
		return nil, apierrors.NewConflict(schema.GroupResource{Group: group.Group, Resource: group.Kind}, account.Name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", req.UID, account.UID))
	}
	if len(req.Spec.Audiences) == 0 {
		req.Spec.Audiences = c.access.audiences
	}
	req.Name, req.Namespace, req.UID = account.Name, account.Namespace, account.UID
	now := time.Now()
	req.CreationTimestamp, req.Status = metav1.NewTime(now), authentication.TokenRequestStatus{}
	if errs := validation.ValidateTokenRequest(req); len(errs) != 0 {
		return nil, apierrors.NewInvalid(group, "", errs)
	}
	pod, secret, node, err := c.bound(account, req.Spec.BoundObjectRef)
	if err != nil {
		return nil, err
	}
	public, private, err := serviceaccount.Claims(*account, pod, secret, node, nil, nil, req.Spec.ExpirationSeconds, 0, req.Spec.Audiences, nil)
	if err != nil {
		return nil, err
	}
	token, err := c.access.tokens.GenerateToken(ctx, public, private)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("failed to generate token: %w", err))
	}
	req.Status = authentication.TokenRequestStatus{
		Token: token, ExpirationTimestamp: metav1.NewTime(now.Add(time.Duration(req.Spec.ExpirationSeconds) * time.Second)),
	}
	return req, nil
}

// bound returns the object that a token is bound to.
func (c *chain) bound(account *core.ServiceAccount, ref *authentication.BoundObjectReference) (*core.Pod, *core.Secret, *core.Node, error) {
	if ref == nil {
		return nil, nil, nil, nil
	}
	var pod *core.Pod
	var secret *core.Secret
	var node *core.Node
	var uid types.UID
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	switch kind.GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		pod = &core.Pod{}
		if err := c.read(pod, v1.SchemeGroupVersion.WithKind("Pod"), "pods", account.Namespace, ref.Name); err != nil {
			return nil, nil, nil, err
		}
		if pod.Spec.ServiceAccountName != account.Name {
			return nil, nil, nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account.Name))
		}
		if name := pod.Spec.NodeName; name != "" {
			node = &core.Node{}
			if c.read(node, v1.SchemeGroupVersion.WithKind("Node"), "nodes", "", name) != nil {
				node = &core.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
			}
		}
		uid = pod.UID
	case schema.GroupKind{Kind: "Node"}:
		node = &core.Node{}
		if err := c.read(node, v1.SchemeGroupVersion.WithKind("Node"), "nodes", "", ref.Name); err != nil {
			return nil, nil, nil, err
		}
		uid = node.UID
	case schema.GroupKind{Kind: "Secret"}:
		secret = &core.Secret{}
		if err := c.read(secret, v1.SchemeGroupVersion.WithKind("Secret"), "secrets", account.Namespace, ref.Name); err != nil {
			return nil, nil, nil, err
		}
		uid = secret.UID
	default:
		return nil, nil, nil, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", kind))
	}
	if ref.UID != "" && uid != ref.UID {
		return nil, nil, nil, apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return pod, secret, node, nil
}

// read reads an object in the internal version.
func (c *chain) read(into runtime.Object, kind schema.GroupVersionKind, resource, namespace, name string) error {
	o := c.api.Get(resource, namespace, name)
	if o == nil {
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: resource}, name)
	}
	return legacyscheme.Scheme.Convert(o, into, nil)
}

// accounts reads the objects on which tokens depend.
type accounts struct{ api *apitest.Server }

func got[T any](a accounts, group, resource, namespace, name string) (T, error) {
	gr := schema.GroupResource{Group: group, Resource: resource}
	o, ok := a.api.Get(gr.String(), namespace, name).(T)
	if !ok {
		return o, apierrors.NewNotFound(gr, name)
	}
	return o, nil
}

func (a accounts) GetServiceAccount(_ context.Context, namespace, name string) (*v1.ServiceAccount, error) {
	return got[*v1.ServiceAccount](a, "", "serviceaccounts", namespace, name)
}

func (a accounts) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	return got[*v1.Pod](a, "", "pods", namespace, name)
}

func (a accounts) GetSecret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	return got[*v1.Secret](a, "", "secrets", namespace, name)
}

func (a accounts) GetNode(_ context.Context, name string) (*v1.Node, error) {
	return got[*v1.Node](a, "", "nodes", "", name)
}

func (a accounts) GetValidatingWebhookConfiguration(_ context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return got[*admissionregistrationv1.ValidatingWebhookConfiguration](a, admissionregistrationv1.GroupName, "validatingwebhookconfigurations", "", name)
}

func (a accounts) GetMutatingWebhookConfiguration(_ context.Context, name string) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	return got[*admissionregistrationv1.MutatingWebhookConfiguration](a, admissionregistrationv1.GroupName, "mutatingwebhookconfigurations", "", name)
}
