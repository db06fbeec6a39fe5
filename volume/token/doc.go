// Package token keeps the tokens of service accounts that volumes show, and gets new
// ones in time.
//
// # What it decides
//
// A token is asked for once for all that want the same: service account, audiences,
// lifetime, object that it is bound to. It is replaced when a fifth of its lifetime is
// left, or when it is a day old (vol-56).
//
// # Usage
//
//	tokens, err := token.New(token.Config{Get: client.Token})
//	t, err := tokens.Token(ctx, "default", "builder", &authenticationv1.TokenRequest{…})
//	use(t.Value)
//	// ask again at t.RefreshAt: then there is a new one
//	tokens.Forget(pod.UID) // when the pod is gone
//
// # Concurrency
//
// All methods may be called from many goroutines. Those that want the same token at
// the same time wait for one request.
//
// # Guarantees and limits
//
//   - A token that has ended is never returned (F-48). One whose replacement fails is
//     returned until then, and RefreshAt says when to try again.
//   - There is no goroutine and no timer here: who uses a token has one already, for all
//     its volumes, as volume.Manager does with volume.Mounted.RefreshAt.
//   - Tokens are in memory only, and none of them is in an error.
//
// # Differences from the kubelet
//
//   - It tells when to ask again, so that no token is late for a pod that nobody syncs.
//   - The jitter, up to 10 s, is drawn once for each token.
//
// # Testing
//
// In a synctest bubble: lifetimes, failures, an API server that is away past the end.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package token
