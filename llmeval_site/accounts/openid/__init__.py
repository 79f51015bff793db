"""Sign-in with an OpenID provider: `settings.OPENID`, which is None if there is none."""
