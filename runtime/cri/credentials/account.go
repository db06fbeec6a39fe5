package credentials

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// An account is the service account that a plugin speaks for. One without a name
// is none.
type account struct {
	namespace, name, uid string

	annotations map[string]string // those that the plugin is to be given
}

// account returns for whom the plugin is to be asked, and whether it is. That an
// account is missing, or a required annotation on it, is no error: with these a
// workload says that it wants the plugin.
func (p *plugin) account(ctx context.Context, tokens TokenSource, pod *v1.Pod) (acct account, ask bool, err error) {
	a := p.TokenAttributes
	if pod == nil || pod.Spec.ServiceAccountName == "" {
		if *a.RequireServiceAccount && tokens == nil {
			return account{}, false, errNoTokens
		}
		return account{}, !*a.RequireServiceAccount, nil
	}
	if tokens == nil {
		return account{}, false, errNoTokens
	}
	acct = account{namespace: pod.Namespace, name: pod.Spec.ServiceAccountName}
	sa, err := tokens.ServiceAccount(ctx, acct.namespace, acct.name)
	if err == nil && sa == nil {
		err = errors.New("there is none")
	}
	if err != nil {
		return account{}, false, fmt.Errorf("get service account %s/%s: %w", acct.namespace, acct.name, err)
	}
	acct.uid = string(sa.UID)
	acct.annotations = map[string]string{}
	for _, key := range a.RequiredServiceAccountAnnotationKeys {
		value, ok := sa.Annotations[key]
		if !ok {
			return account{}, false, nil
		}
		acct.annotations[key] = value
	}
	for _, key := range a.OptionalServiceAccountAnnotationKeys {
		if value, ok := sa.Annotations[key]; ok {
			acct.annotations[key] = value
		}
	}
	return acct, true, nil
}

var errNoTokens = errors.New("needs tokens of service accounts, and there is no TokenSource: it is not asked")

// key tells accounts apart in the cache. An account that was made anew, or whose
// annotations were changed, is another. No account is "".
func (a account) key() string {
	if a.name == "" {
		return ""
	}
	parts := []string{a.namespace, a.name, a.uid}
	for _, k := range slices.Sorted(maps.Keys(a.annotations)) {
		parts = append(parts, k, a.annotations[k])
	}
	return fmt.Sprintf("%q", parts)
}

// mark stands for a token where it need not be kept.
func mark(token string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(token))) }
