find service -name '*.conf' -not -path '*/old/*' -print0 | tar -czf configs.tar.gz --null -T -
