package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/anonymous"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/filters/impersonation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/pkg/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// access authenticates and authorizes requests.
type access struct {
	requests   authenticator.Request
	authorizer authorizer.UnconditionalAuthorizer
	rules      authorizer.RuleResolver
	resolver   validation.AuthorizationRuleResolver // nil without RBAC
	tokens     serviceaccount.TokenGenerator
	audiences  []string
}

// newAccess returns the access of a configuration. With RBAC, it stores the roles and bindings
// that kube-apiserver creates.
func newAccess(api *apitest.Server, cfg Config) (*access, error) {
	a := &access{audiences: []string{cfg.Issuer}, authorizer: allowed{}, rules: authorizerfactory.NewAlwaysAllowAuthorizer()}
	key := cfg.TokenKey
	if key == nil {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		key = made
	}
	var err error
	if a.tokens, err = serviceaccount.JWTTokenGenerator(cfg.Issuer, key); err != nil {
		return nil, fmt.Errorf("apiserver: Config.TokenKey: %w", err)
	}
	keys, err := serviceaccount.StaticPublicKeysGetter([]any{key})
	if err != nil {
		return nil, fmt.Errorf("apiserver: Config.TokenKey: %w", err)
	}
	token := serviceaccount.JWTTokenAuthenticator([]string{cfg.Issuer}, keys, a.audiences, serviceaccount.NewValidator(accounts{api}))
	all := []authenticator.Request{bearertoken.New(token)}
	if cfg.ClientCAs != nil {
		options := x509.DefaultVerifyOptions()
		options.Roots = cfg.ClientCAs
		all = append([]authenticator.Request{x509.New(options, x509.CommonNameUserConversion)}, all...)
	}
	a.requests = group.NewAuthenticatedGroupAdder(union.New(all...))
	if cfg.RBAC {
		putRoles(api)
		rules := rbac.New(roles{api}, roles{api}, roles{api}, roles{api})
		a.authorizer, a.rules = masters{rules}, rules
		a.resolver = validation.NewDefaultRuleResolver(roles{api}, roles{api}, roles{api}, roles{api})
	}
	return a, nil
}

// masters permits everything to the group system:masters, and to others what rbac permits.
type masters struct{ rbac *rbac.RBACAuthorizer }

func (m masters) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if u := a.GetUser(); u != nil && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
		return authorizer.DecisionAllow, "", nil
	}
	return m.rbac.Authorize(ctx, a)
}

// Handler returns the handler of a server of [Start] for clients that are not trusted: it
// authenticates requests by client certificates of Config.ClientCAs and by the tokens of
// ServiceAccounts, and authorizes them if Config.RBAC is set. Requests without credentials are
// those of system:anonymous. The TLS server must request client certificates.
func Handler(api *apitest.Server) http.Handler {
	c, ok := api.Extension.(*chain)
	if !ok {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "apiserver: Handler needs a server of Start", http.StatusInternalServerError)
		})
	}
	served := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, ok := request.UserFrom(r.Context()); ok {
			r = r.WithContext(apitest.WithUser(r.Context(), apitest.User{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}))
		}
		api.ServeHTTP(w, r)
	})
	codecs := legacyscheme.Codecs
	authorized := filters.WithAuthorization(served, c.access.authorizer, codecs)
	authorized = impersonation.WithImpersonation(authorized, c.access.authorizer, codecs)
	authenticated := filters.WithAuthentication(authorized, union.NewFailOnError(c.access.requests, anonymous.NewAuthenticator(nil)),
		filters.Unauthorized(codecs), c.access.audiences, nil)
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	guarded := filters.WithRequestInfo(authenticated, resolver)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); first {
		case "healthz", "livez", "readyz":
			api.ServeHTTP(w, r)
		default:
			guarded.ServeHTTP(w, r)
		}
	})
}

// putRoles stores the roles and bindings that kube-apiserver creates when it starts.
func putRoles(api *apitest.Server) {
	for _, r := range bootstrappolicy.ClusterRoles() {
		api.Put(&r)
	}
	for _, b := range bootstrappolicy.ClusterRoleBindings() {
		api.Put(&b)
	}
	for namespace, all := range bootstrappolicy.NamespaceRoles() {
		for _, r := range all {
			r.Namespace = namespace
			api.Put(&r)
		}
	}
	for namespace, all := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range all {
			b.Namespace = namespace
			api.Put(&b)
		}
	}
}

// roles reads roles and bindings.
type roles struct{ api *apitest.Server }

func (r roles) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	return got[*rbacv1.Role](accounts(r), rbacv1.GroupName, "roles", namespace, name)
}

func (r roles) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	return got[*rbacv1.ClusterRole](accounts(r), rbacv1.GroupName, "clusterroles", "", name)
}

func (r roles) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	var out []*rbacv1.RoleBinding
	for _, o := range r.api.List("rolebindings.rbac.authorization.k8s.io") {
		if b := o.(*rbacv1.RoleBinding); b.Namespace == namespace {
			out = append(out, b)
		}
	}
	return out, nil
}

func (r roles) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	var out []*rbacv1.ClusterRoleBinding
	for _, o := range r.api.List("clusterrolebindings.rbac.authorization.k8s.io") {
		out = append(out, o.(*rbacv1.ClusterRoleBinding))
	}
	return out, nil
}
