sed -i 's|numbers = core.split(".")|numbers = [int(n) for n in core.split(".")]|; s|return (numbers, pre)|return (numbers, pre == "", pre)|' versions/parse.py
sed -i 's|, key=parse)$|, key=parse, default=None)|; s|return sorted(versions, key=parse, default=None)|return sorted(versions, key=parse)|' versions/select.py
